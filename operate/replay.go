package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ReplayOptions select the copies that Replay puts back.
type ReplayOptions struct {
	Filter outbox.KeptFilter // Until is required: copies that are put back are relayed again and would match again
	After  outbox.KeptPlace  // continue after this place
	Limit  int               // copies that one call reads; 0 is 500, at most outbox.MaxKept
}

// Replayed is the result of one call of Replay.
type Replayed struct {
	Messages int
	Place    outbox.KeptPlace // After of the next call
	More     bool             // there may be more
}

const (
	standardReplay = 500
	mostReplay     = 8 << 20 // bytes of bodies and headers in one transaction
)

// Replay puts copies of relayed messages back into the queue of their relay, in the order of the relay, with their ids,
// headers and bodies. Use it if the receiving system has lost messages. One call is one transaction of limited size
// (500 copies by default, about 8 MiB): call it until More is false, and after an interruption with the last Place. A
// receiver that still has the ids in its inbox handles no message twice.
//
// Replay returns ErrNotInstalled if the relay no longer has a queue, and an error if Until is missing, if Limit is
// out of range, or if the database fails.
func (o *Operator) Replay(ctx context.Context, options ReplayOptions) (Replayed, error) {
	done, err := o.replay(ctx, options)
	if err != nil {
		return Replayed{Place: options.After, More: true},
			fmt.Errorf("replay messages of relay %.80q: %w", options.Filter.Endpoint, err)
	}
	if done.Messages > 0 {
		o.Wake(ctx, options.Filter.Endpoint)
	}
	return done, nil
}

func (o *Operator) replay(ctx context.Context, options ReplayOptions) (done Replayed, err error) {
	if options.Filter.Until.IsZero() {
		return done, errors.New("Until is missing: without it, the replay would find its own messages again")
	}
	if options.Limit == 0 {
		options.Limit = standardReplay
	}
	c := audit.Change{Verb: "outbox.replay", Target: options.Filter.Endpoint}
	err = o.inAudit(ctx, &c, func(tx pgx.Tx) error {
		known, err := o.routes.Reload(ctx, tx)
		if err != nil {
			return err
		}
		q := known.Endpoints[options.Filter.Endpoint]
		if q == nil {
			return fmt.Errorf("it has no queue: %w", ErrNotInstalled)
		}
		page, err := o.outbox.ListKept(ctx, tx, options.Filter, options.After, options.Limit)
		if err != nil {
			return err
		}
		found := page.Found
		done = Replayed{Place: page.Next, More: page.More}
		if n := affordable(found); n < len(found) {
			found, done.More = found[:n], true
			done.Place = outbox.KeptPlace{Relayed: found[n-1].Relayed, ID: found[n-1].ID}
		}
		if err := o.outbox.ReadBodies(ctx, tx, found); err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(k outbox.Kept) bool { return k.Body == nil })
		done.Messages = len(found)
		c.Before, c.After = map[string]int{"messages": 0}, map[string]int{"messages": done.Messages}
		return o.putBack(ctx, tx, q, found)
	})
	return done, pgerr.Explain(err)
}

// affordable returns how many of the copies fit into one transaction, at least one.
func affordable(found []outbox.Kept) int {
	sum := 0
	for n, k := range found {
		if sum += k.Size + len(k.Header); sum > mostReplay && n > 0 {
			return n
		}
	}
	return len(found)
}

// putBack writes copies to the queue. If a manifest sent a message, its run has been over since the message was
// relayed, so the run is removed from the header.
func (o *Operator) putBack(ctx context.Context, tx pgx.Tx, q *queue.Queue, found []outbox.Kept) error {
	if len(found) == 0 {
		return nil
	}
	pipeline := &pgx.Batch{}
	in := queue.NewInOrder(pipeline, q)
	for _, k := range found {
		header, info := k.Header, saga.Info{ID: k.ID}
		if wire.ReadHeader(header, &info) == nil && info.Firing != nil {
			info.Firing = nil
			header = wire.AppendHeader(nil, &info)
		}
		in.Add(k.ID, k.Kind, header, k.Body)
	}
	in.Flush()
	return tx.SendBatch(ctx, pipeline).Close()
}
