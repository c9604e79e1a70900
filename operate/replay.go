package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/queue"

	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ReplayOptions choose the copies that Replay puts back.
type ReplayOptions struct {
	Filter outbox.KeptFilter // Until is required: copies that are put back are relayed again, and would be found again
	After  outbox.KeptPlace  // continue after this place
	Limit  int               // copies that one call looks at; 0 is 500, at most outbox.MostKept
}

// Replayed is the result of one call of Replay.
type Replayed struct {
	Messages int
	Place    outbox.KeptPlace // give it as After to continue
	More     bool             // there may be more
}

const (
	standardReplay = 500
	mostReplay     = 8 << 20 // bytes of bodies in one transaction
)

// Replay puts copies of relayed messages back into the queue of their relay, in the order in which they were relayed,
// with their ids, headers and bodies. It is for another side that has lost messages. One call is one transaction of
// bounded size: call it until More is false, and after an interruption with the last Place. A receiver that still knows
// the ids takes no message twice.
//
// Errors: ErrNotInstalled if the relay no longer has a queue; Until is missing; Limit is out of range; those of the
// database.
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
		return done, errors.New("Until is missing: without it, messages that are put back would be found again")
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

// affordable is how many of the copies go into one transaction, at least one.
func affordable(found []outbox.Kept) int {
	sum := 0
	for n, k := range found {
		if sum += k.Size + len(k.Header); sum > mostReplay && n > 0 {
			return n
		}
	}
	return len(found)
}

// putBack writes copies to the queue. The run of a message of a manifest has been over since it was relayed, so the
// header no longer names it.
func (o *Operator) putBack(ctx context.Context, tx pgx.Tx, q *queue.Queue, found []outbox.Kept) error {
	if len(found) == 0 {
		return nil
	}
	pipeline := &pgx.Batch{}
	in := queue.NewInOrder(pipeline, q)
	for _, k := range found {
		header, info := k.Header, saga.Info{ID: k.ID}
		if wire.ReadHeader(header, &info) == nil && info.Fire != nil {
			info.Fire = nil
			header = wire.AppendHeader(nil, &info)
		}
		in.Add(k.ID, k.Kind, header, k.Body)
	}
	in.Flush()
	return tx.SendBatch(ctx, pipeline).Close()
}
