package sagatest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

// A parcel is a saga with every kind of part, so that transcripts cover every case.

type pickup struct {
	Parcel string
	Days   int
}
type scanned struct {
	Parcel string
	Where  string
}
type delivered struct{ Parcel string }
type returned struct{ Parcel string }
type priced struct{ Cents int64 }
type asked struct{ Parcel string }
type remind struct{ Text string }
type lost struct{}
type askPrice struct{ Days int }
type thanks struct{ Parcel string }
type apology struct{ Parcel string }
type moved struct{ Where string }

func (pickup) Kind() string    { return "parcel.pickup" }
func (scanned) Kind() string   { return "parcel.scanned" }
func (delivered) Kind() string { return "parcel.delivered" }
func (returned) Kind() string  { return "parcel.returned" }
func (priced) Kind() string    { return "price.told" }
func (asked) Kind() string     { return "parcel.asked" }
func (remind) Kind() string    { return "parcel.remind" }
func (lost) Kind() string      { return "parcel.lost" }
func (askPrice) Kind() string  { return "price.ask" }
func (thanks) Kind() string    { return "parcel.thanks" }
func (apology) Kind() string   { return "parcel.apology" }
func (moved) Kind() string     { return "parcel.moved" }

type parcel struct {
	Days  int
	Where string `json:",omitempty"`
	Cents int64  `json:",omitempty"`
}

type parcelV1 struct{ Hours int }

func (p *parcel) pickup(ctx *saga.Context, m pickup) error {
	if m.Days < 0 {
		return saga.Permanent(errors.New("days are negative"))
	}
	if m.Days > 100 {
		return saga.RetryAfter(time.Minute, errors.New("the depot is full"))
	}
	if !ctx.IsNew() {
		return saga.Discard("picked up twice")
	}
	p.Days = m.Days
	ctx.Send(askPrice{Days: m.Days})
	ctx.Timeout(time.Duration(m.Days)*24*time.Hour, lost{}, saga.Named("lost"))
	return nil
}

func (p *parcel) scanned(ctx *saga.Context, m scanned) error {
	switch m.Where {
	case "nowhere":
		p.Where = "half way"
		ctx.Publish(moved{Where: "half way"})
		return errors.New("the scanner broke")
	case "depot": // two reminders: one soon, one later
		ctx.Timeout(time.Hour, remind{Text: "soon"})
		ctx.Timeout(2*time.Hour, remind{Text: "later"})
	case "border": // the journey takes longer
		ctx.Timeout(10*24*time.Hour, lost{}, saga.Named("lost"))
	case "door":
		ctx.CancelTimeout("lost")
	case p.Where:
		return nil
	case "moon":
		ctx.Timeout(time.Hour, moved{})
	}
	p.Where = m.Where
	ctx.Publish(moved{Where: m.Where}, saga.WithHeader("parcel", ctx.Key()))
	return nil
}

func (p *parcel) delivered(ctx *saga.Context, m delivered) error {
	if ctx.HasOriginator() {
		ctx.ReplyToOriginator(thanks{Parcel: ctx.Key()})
	}
	ctx.Complete()
	return nil
}

func (p *parcel) returned(ctx *saga.Context, _ returned) error { ctx.Complete(); return nil }

func (p *parcel) asked(ctx *saga.Context, m asked) error {
	ctx.Reply(moved{Where: p.Where})
	return nil
}

func (p *parcel) priced(ctx *saga.Context, m priced) error { p.Cents = m.Cents; return nil }

func (p *parcel) remind(ctx *saga.Context, m remind) error {
	p.Where += " " + m.Text
	return nil
}

func (p *parcel) lost(ctx *saga.Context, _ lost) error {
	ctx.ReplyToOriginator(apology{Parcel: ctx.Key()})
	ctx.Complete()
	return nil
}

func notHere(ctx *saga.Context, m asked) error {
	ctx.Reply(apology{Parcel: m.Parcel})
	return nil
}

func byParcel(m scanned) string { return m.Parcel }

func parcels() *saga.Definition {
	return saga.Define("parcel", saga.Options{StateVersion: 2},
		saga.StartedBy(func(m pickup) string { return m.Parcel }, (*parcel).pickup),
		saga.Handles(byParcel, (*parcel).scanned),
		saga.Handles(func(m delivered) string { return m.Parcel }, (*parcel).delivered,
			saga.IfMissing(saga.MissingDeadLetter)),
		saga.Handles(func(m returned) string { return m.Parcel }, (*parcel).returned,
			saga.IfMissing(saga.MissingRetry)),
		saga.Handles(func(m asked) string { return m.Parcel }, (*parcel).asked, saga.IfMissingDo(notHere)),
		saga.OnReply((*parcel).priced),
		saga.OnTimeout((*parcel).remind),
		saga.OnTimeout((*parcel).lost),
		saga.Upcast(1, func(old parcelV1) (parcel, error) { return parcel{Days: old.Hours / 24}, nil }),
	)
}

func TestTranscripts(t *testing.T) { sagatest.Transcript(t, parcels(), "testdata/*.txt") }
