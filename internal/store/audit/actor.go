package audit

import (
	"context"

	"github.com/edda-go/edda/internal/base/pg"
)

// Actor is the actor of operate.Actor.
type Actor struct {
	Name string // a person or a program, such as an e-mail address; at most 200 bytes are kept
	From string // an address, a host or a program; "" is the application_name of the connection
}

const (
	mostName   = 200     // bytes of a name, an origin, a verb or a target
	mostReason = 8 << 10 // bytes
)

type (
	actorKey  struct{}
	reasonKey struct{}
)

// WithActor implements operate.WithActor.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// WithReason implements operate.WithReason.
func WithReason(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, reasonKey{}, reason)
}

// ActorOf returns the actor of ctx, or the zero Actor. It cuts long texts, and replaces characters that Postgres
// refuses.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return Actor{Name: pg.Storable(a.Name, mostName), From: pg.Storable(a.From, mostName)}
}

func reasonOf(ctx context.Context) string {
	reason, _ := ctx.Value(reasonKey{}).(string)
	return reason
}
