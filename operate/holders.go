package operate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// mostHolders is the maximum number of holders of one limit that Limits.Holders returns.
const mostHolders = 64

// Holder is the holder of one slot of a limit, by the database's clock.
type Holder struct {
	Limit    string
	Slot     int
	Name     string // the holder's name in the table; "" for a batch, whose transaction holds the slot
	Process  string // the process that holds it, in words; "" if it is unknown
	Lost     bool   // that process no longer lives: the slot is free when the lease expires
	Draining bool   // the slot is above the lowered limit: it is not granted again
	Since    time.Time
	Until    time.Time     // the end of the lease, unless it is extended; zero for a batch
	Left     time.Duration // time until Until
	Does     string        // what the slot is held for, in words
	Messages []saga.ID     // messages that the process is handling for the endpoint
}

// Holders reads the holders of a limit, or of every limit if name is "", in the order of limits and slots: the first
// 64 of each. It sends a few bounded statements, each with its own snapshot, locks nothing and needs only SELECT. For a
// batch, Process and Since describe its connection to the server; Since is visible only to the same role, and to roles
// with the rights of pg_read_all_stats.
//
// No table stores which handler has which slot, so if a process handles several messages, each of its slots lists all
// of them. A message that is among more than 2,000 that are due later is missed.
func (l Limits) Holders(ctx context.Context, name string) ([]Holder, error) {
	held, err := l.o.limits.Holders(ctx, l.o.pool, name, mostHolders)
	if err == nil {
		var all []Holder
		if all, err = l.describe(ctx, held); err == nil {
			return all, nil
		}
	}
	return nil, pgerr.Explain(err)
}

func (l Limits) describe(ctx context.Context, held []limit.Held) ([]Holder, error) {
	all, sessions := []Holder{}, []saga.ID{}
	for _, h := range held {
		if session, ok := limit.SessionOf(h.Holder); ok {
			sessions = append(sessions, session)
		}
	}
	processes, err := l.processes(ctx, sessions)
	if err != nil {
		return nil, err
	}
	claims, err := l.claims(ctx, held)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		one := holderOf(&h)
		if session, ok := limit.SessionOf(h.Holder); ok {
			if p, known := processes[session]; known {
				one.Process, one.Lost = fmt.Sprintf("%s (process %d)", p.Host, p.PID), !p.Lives
			}
			one.has(claims[h.Name][session])
		}
		all = append(all, one)
	}
	return all, nil
}

func (l Limits) processes(ctx context.Context, sessions []saga.ID) (map[saga.ID]membership.Process, error) {
	all := map[saga.ID]membership.Process{}
	if len(sessions) == 0 {
		return all, nil
	}
	known, err := membership.Processes(ctx, l.o.pool, l.o.schema, []int{}, sessions)
	for _, p := range known {
		all[p.Session] = p
	}
	return all, err
}

func holderOf(h *limit.Held) Holder {
	one := Holder{Limit: h.Name, Slot: h.No, Name: h.Holder, Draining: h.Draining, Since: h.Since,
		Until: h.Until, Messages: []saga.ID{}}
	if h.Holder != "" {
		one.Left = h.Until.Sub(h.Now)
	}
	switch {
	case h.Holder == "":
		one.Does = "runs a batch"
		if h.Server > 0 {
			one.Process = fmt.Sprintf("server process %d", h.Server)
		}
		if h.Application != "" {
			one.Process = fmt.Sprintf("%s (server process %d)", h.Application, h.Server)
		}
	case strings.HasPrefix(h.Name, limit.NamedPrefix):
		one.Process, one.Does = h.Holder, "runs code of its program"
	default:
		one.Does = "handles a message"
	}
	return one
}

// claim is a message that a process is handling.
type claim struct {
	id   saga.ID
	kind string
}

// mostClaims is the number of messages of a queue that are searched for claims.
const mostClaims = 2000

// claims returns the messages that processes are handling for the endpoints of these limits, by session.
func (l Limits) claims(ctx context.Context, held []limit.Held) (map[string]map[saga.ID][]claim, error) {
	all := map[string]map[saga.ID][]claim{}
	var known *queue.Routes
	for _, h := range held {
		if _, ok := limit.SessionOf(h.Holder); !ok || all[h.Name] != nil {
			continue
		}
		all[h.Name] = map[saga.ID][]claim{}
		if known == nil {
			var err error
			if known, err = l.o.routes.Reload(ctx, l.o.pool); err != nil {
				return nil, err
			}
		}
		q := known.Endpoints[h.Name]
		if q == nil {
			continue // it was dropped
		}
		if err := readClaims(ctx, l.o.pool, q, all[h.Name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readClaims(ctx context.Context, pool pg.Queryer, q *queue.Queue, all map[saga.ID][]claim) error {
	rows, err := pool.Query(ctx, q.SQL("claimed"), mostClaims)
	if err != nil {
		return fmt.Errorf("read the messages of the holders: %w", err)
	}
	var one claim
	var session saga.ID
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&one.id), &one.kind, (*[16]byte)(&session)}, func() error {
		all[session] = append(all[session], one)
		return nil
	})
	return err
}

// has adds the messages that the process of the holder is handling. No table stores which slot each message has.
func (h *Holder) has(claims []claim) {
	kinds, seen := []string{}, map[string]bool{}
	for _, c := range claims {
		if h.Messages = append(h.Messages, c.id); !seen[c.kind] {
			seen[c.kind], kinds = true, append(kinds, c.kind)
		}
	}
	switch len(claims) {
	case 0:
	case 1:
		h.Does = "handles " + kinds[0]
	default:
		h.Does = fmt.Sprintf("handles one of %d claimed messages: %s", len(claims),
			strings.Join(kinds[:min(3, len(kinds))], ", "))
	}
}
