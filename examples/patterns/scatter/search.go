package scatter

import (
	"time"

	"github.com/edda-go/edda/saga"
)

// page saga

// Search is the state: who has not answered yet, and the best so far.
type Search struct {
	Missing map[string]bool
	Best    *Price
}

func (s *Search) start(ctx *saga.Context, m GetQuote) error {
	if !ctx.IsNew() {
		return nil // they are asked already
	}
	s.Missing = map[string]bool{}
	for _, supplier := range m.Suppliers {
		s.Missing[supplier] = true
		ctx.Send(AskSupplier{Supplier: supplier, Article: m.Article})
	}
	ctx.Timeout(30*time.Second, TimeIsUp{})
	return nil
}

func (s *Search) priced(ctx *saga.Context, m Price) error {
	delete(s.Missing, m.Supplier)
	if s.Best == nil || m.Cents < s.Best.Cents {
		s.Best = &m
	}
	if len(s.Missing) > 0 {
		return nil
	}
	return s.end(ctx, TimeIsUp{})
}

func (s *Search) end(ctx *saga.Context, _ TimeIsUp) error {
	ctx.Publish(Quote{ID: ctx.Key(), Best: s.Best})
	ctx.Complete()
	return nil
}

// Searches drops a price that comes after the end: it is of no use any more.
var Searches = saga.Define("search", saga.Options{},
	saga.StartedBy(func(m GetQuote) string { return m.ID }, (*Search).start),
	saga.OnReply((*Search).priced, saga.IfMissing(saga.MissingDiscard)),
	saga.OnTimeout((*Search).end))

// end
