package main

import (
	"context"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// Settlement is the state of one currency in one night.
type Settlement struct {
	Manifest string    `json:"manifest"`
	Due      time.Time `json:"due"`
}

func (s *Settlement) start(ctx *saga.Context, m Settle) error {
	fire := ctx.Info().Firing
	s.Manifest, s.Due = fire.Manifest, fire.Due
	ctx.Send(AskBank(m)) // its only field is the currency too
	return nil
}

func (s *Settlement) balance(ctx *saga.Context, m Balance) error {
	ctx.Send(Enter{Manifest: s.Manifest, Due: s.Due, Cents: m.Cents})
	return nil
}

// entered is the end of the saga, and with it of the run.
func (s *Settlement) entered(ctx *saga.Context, _ Entered) error {
	ctx.Complete()
	return nil
}

// night is the key: however often a firing's message comes, its night is one instance.
func night(m Settle, in saga.Info) string {
	return m.Currency + " " + in.Firing.Due.UTC().Format(time.RFC3339)
}

var settlements = saga.Define("settlement", saga.Options{},
	saga.StartedBy(night, (*Settlement).start),
	saga.OnReply((*Settlement).balance),
	saga.OnReply((*Settlement).entered))

// bank is an external system that answers after a while.
type bank struct{ takes time.Duration }

func (b bank) ask(ctx *bus.Context, m AskBank) error {
	select {
	case <-time.After(b.takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	ctx.Reply(Balance{Cents: int64(len(m.Currency)) * 100})
	return nil
}
