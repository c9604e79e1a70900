package bus_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// way is one way to send a command or to publish an event, alone or in a transaction that commits if commit is true.
type way func(ctx context.Context, w *world, commit bool, m saga.Message, o ...saga.SendOption) (saga.Sent, error)

func inTx(send func(b *bus.Bus) func(context.Context, pgx.Tx, saga.Message, ...saga.SendOption) (saga.Sent,
	error)) way {
	return func(ctx context.Context, w *world, commit bool, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
		tx := w.begin()
		sent, err := send(w.bus)(ctx, tx, m, o...)
		if err != nil || !commit {
			return sent, errors.Join(err, tx.Rollback(ctx))
		}
		return sent, tx.Commit(ctx)
	}
}

func inSQL(send func(b *bus.Bus) func(context.Context, *sql.Tx, saga.Message, ...saga.SendOption) (saga.Sent,
	error)) way {
	return func(ctx context.Context, w *world, commit bool, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
		db := stdlib.OpenDBFromPool(w.pool)
		defer func() { _ = db.Close() }()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return saga.Sent{}, err
		}
		sent, err := send(w.bus)(ctx, tx, m, o...)
		if err != nil || !commit {
			return sent, errors.Join(err, tx.Rollback())
		}
		return sent, tx.Commit()
	}
}

var sends = map[string]way{
	"Send": func(ctx context.Context, w *world, _ bool, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
		return w.bus.Send(ctx, m, o...)
	},
	"SendTx": inTx(func(b *bus.Bus) func(context.Context, pgx.Tx, saga.Message, ...saga.SendOption) (saga.Sent, error) {
		return b.SendTx
	}),
	"SendAllTx": inTx(func(b *bus.Bus) func(context.Context, pgx.Tx, saga.Message, ...saga.SendOption) (saga.Sent,
		error) {
		return func(ctx context.Context, tx pgx.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
			sent, err := b.SendAllTx(ctx, tx, []saga.Posting{{Message: m, Options: o}})
			if err != nil {
				return saga.Sent{}, err
			}
			return sent[0], nil
		}
	}),
	"SendSQL": inSQL(func(b *bus.Bus) func(context.Context, *sql.Tx, saga.Message, ...saga.SendOption) (saga.Sent,
		error) {
		return b.SQL(nil).SendTx
	}),
}

var publishes = map[string]way{
	"Publish": func(ctx context.Context, w *world, _ bool, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
		return w.bus.Publish(ctx, m, o...)
	},
	"PublishTx": inTx(func(b *bus.Bus) func(context.Context, pgx.Tx, saga.Message, ...saga.SendOption) (saga.Sent,
		error) {
		return b.PublishTx
	}),
	"PublishSQL": inSQL(func(b *bus.Bus) func(context.Context, *sql.Tx, saga.Message, ...saga.SendOption) (saga.Sent,
		error) {
		return b.SQL(nil).PublishTx
	}),
}

// Every way to send makes the same row: body, headers, intent, due, and the same duplicate the second time.
func TestEveryWayToSendIsTheSame(t *testing.T) {
	t.Parallel()
	for name, send := range sends {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			got := make(chan saga.Info, 10)
			w.start("gets", bus.EndpointOptions{Poll: 20 * time.Millisecond},
				bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m told) error {
					if m.Sum != 7 {
						return fmt.Errorf("%+v", m)
					}
					got <- ctx.Info()
					return nil
				}))
			id := newID(t)
			begun := time.Now()
			sent, err := send(t.Context(), w, true, told{Sum: 7}, saga.WithHeader("who", `"me" & ü`),
				saga.Delay(50*time.Millisecond), saga.WithID(id))
			if err != nil || sent.ID != id || sent.Copies != 1 || sent.Duplicate {
				t.Fatalf("%+v %v", sent, err)
			}
			info := await(w, "the message", got)
			if info.ID != id || info.Header("who") != `"me" & ü` || info.Intent != saga.Command || info.From != "" ||
				info.Attempt != 1 ||
				info.CorrelationID != id || info.ConversationID != id {
				t.Errorf("%+v", info)
			}
			if wait := time.Since(begun); wait < 50*time.Millisecond || info.Due.After(time.Now()) {
				t.Errorf("here after %v, and due at %v", wait, info.Due)
			}
			if sent, err := send(t.Context(), w, true, told{Sum: 7}, saga.WithID(id)); err != nil || !sent.Duplicate {
				t.Errorf("again: %+v %v", sent, err)
			}
			if _, err := send(t.Context(), w, true, told{Sum: 8}, saga.WithID(id)); !errors.Is(err, bus.ErrIDConflict) {
				t.Errorf("%v, want ErrIDConflict", err)
			}
			past, err := send(t.Context(), w, true, told{Sum: 7}, saga.At(time.Now().Add(-time.Hour)))
			if err != nil {
				t.Fatal(err)
			}
			if info := await(w, "a message of the past", got); info.ID != past.ID ||
				info.Due.Before(begun.Add(-time.Minute)) {
				t.Errorf("%+v: what is due in the past is due now", info)
			}
		})
	}
}

func TestMessageOfATransactionThatRolledBackIsNotSent(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]way{"SendTx": sends["SendTx"], "SendAllTx": sends["SendAllTx"],
		"SendSQL": sends["SendSQL"], "PublishTx": publishes["PublishTx"], "PublishSQL": publishes["PublishSQL"]} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			if _, err := send(t.Context(), w, false, told{}); err != nil {
				t.Fatal(err)
			}
			w.want(0, `SELECT count(*) FROM `+w.queue("listener"))
			if _, err := send(t.Context(), w, true, told{}); err != nil {
				t.Fatal(err)
			}
			w.want(1, `SELECT count(*) FROM `+w.queue("listener"))
		})
	}
}

func TestPublishGoesToEverySubscriber(t *testing.T) {
	t.Parallel()
	for name, publish := range publishes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			if sent, err := publish(t.Context(), w, true, shipped{}); err != nil || sent.Copies != 0 {
				t.Errorf("to nobody: %+v %v", sent, err)
			}
			w.install("one", bus.HandleTx(hears))
			w.install("two", bus.HandleTx(hears))
			sent, err := publish(t.Context(), w, true, shipped{})
			if err != nil || sent.Copies != 2 {
				t.Errorf("%+v %v", sent, err)
			}
			for _, name := range []string{"one", "two"} {
				w.want(1, `SELECT count(*) FROM `+w.queue(name)+
					` WHERE id = $1::text::uuid AND position('"edda-intent":"publish"' IN convert_from(header, `+
					`'UTF8')) > 0`, sent.ID.String())
			}
		})
	}
}

// An error that names every endpoint of a large system is of no use.
func TestAnAmbiguousSendNamesTenEndpoints(t *testing.T) {
	w := newWorld(t, bus.Options{})
	for n := range 12 {
		w.install(fmt.Sprintf("listener-%02d", n), bus.HandleTx(hears))
	}
	_, err := w.bus.Send(t.Context(), shipped{})
	if !errors.Is(err, bus.ErrAmbiguous) || !strings.Contains(err.Error(), "listener-09, 2 more)") {
		t.Error(err)
	}
}

// The error of a command without a route, or with two, names the remedy.
func TestErrorsOfRoutesNameTheRemedy(t *testing.T) {
	t.Parallel()
	for name, send := range sends {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{Routes: []bus.Routing{bus.Route[paid]("one")}})
			if _, err := send(t.Context(), w, true, shipped{}); !errors.Is(err, bus.ErrNoRoute) ||
				!strings.Contains(err.Error(), "order.shipped") {
				t.Errorf("%v", err)
			}
			if _, err := send(t.Context(), w, true, shipped{}, saga.To("nowhere")); !errors.Is(err, bus.ErrNoRoute) ||
				!strings.Contains(err.Error(), "nowhere") {
				t.Errorf("%v", err)
			}
			w.install("one", bus.HandleTx(hears))
			w.install("two", bus.HandleTx(hears))
			_, err := send(t.Context(), w, true, shipped{})
			if !errors.Is(err, bus.ErrAmbiguous) || !strings.Contains(err.Error(), "one, two") ||
				strings.Count(err.Error(), "send order.shipped") > 1 {
				t.Errorf("%v", err)
			}
			if sent, err := send(t.Context(), w, true, shipped{}, saga.To("two")); err != nil || sent.Copies != 1 {
				t.Errorf("%+v %v", sent, err)
			}
			w.want(1, `SELECT count(*) FROM `+w.queue("two"))
			if _, err := send(t.Context(), w, true, paid{}); err != nil { // by its Route, without a consumer
				t.Error(err)
			}
			w.want(1, `SELECT count(*) FROM `+w.queue("one"))
			var permanent *saga.PermanentError
			if _, err := send(t.Context(), w, true, place{Order: strings.Repeat("x", 2<<20)}); !errors.As(err,
				&permanent) || !errors.Is(err, saga.ErrTooLarge) {
				t.Errorf("%v, want a permanent ErrTooLarge", err)
			}
		})
	}
}

// A transaction of a different database would have committed the message where no worker looks for it.
func TestSendThroughAnotherDatabaseIsRefused(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.send(told{})
	name := w.schema + "_db"
	w.createDatabase(name)
	t.Cleanup(func() {
		if _, err := w.owner.Exec(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Database = name
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pgtest.Migrate(t, pool, w.schema)
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := w.bus.SendTx(t.Context(), tx, told{})
		return err
	})
	if !errors.Is(err, bus.ErrOtherDatabase) {
		t.Errorf("%v, want ErrOtherDatabase", err)
	}
}

// ReplyToOriginator answers the sender of the start, from any later step; an answer goes to the requesting instance.
func TestReplyToOriginatorReachesWhoAsked(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		asks := saga.Define("asks", saga.Options{Store: store},
			saga.StartedBy(func(m place) string { return m.Order }, func(_ *tally, ctx *saga.Context, m place) error {
				ctx.Send(add{Key: "asked-by-" + m.Order, N: m.Total})
				return nil
			}),
			saga.OnReply(func(s *tally, _ *saga.Context, m told) error { s.Sum = m.Sum; return nil }))
		answers := saga.Define("answers", saga.Options{Store: store},
			saga.StartedBy(func(m add) string { return m.Key }, func(s *tally, ctx *saga.Context, m add) error {
				s.Sum = m.N
				ctx.Timeout(time.Millisecond, overdue{})
				return nil
			}),
			saga.OnTimeout(func(s *tally, ctx *saga.Context, _ overdue) error {
				ctx.ReplyToOriginator(told{Sum: 2 * s.Sum})
				ctx.Complete()
				return nil
			}))
		w.start("answers", bus.EndpointOptions{}, bus.Saga(answers))
		w.start("asks", bus.EndpointOptions{}, bus.Saga(asks))
		w.send(place{Order: "7", Total: 21})
		w.until("the answer is there", func() bool {
			return w.count(`SELECT count(*) FROM edda.saga WHERE saga = 'asks' AND key = '7'
				AND (state ->> 'Sum')::int = 42`) == 1
		})
		w.untilEmpty("answers")
		w.want(0, `SELECT count(*) FROM edda.saga WHERE saga = 'answers'`)
	})
}

// SendAllTx has the same result as single sends: each command is in its own queue, in the order given, with its
// options. If one cannot be sent and the transaction ends with that, no command is written.
func TestManyCommandsAtOnce(t *testing.T) {
	t.Parallel()
	for _, notify := range []bool{false, true} {
		t.Run(fmt.Sprintf("NotifyInTx=%t", notify), func(t *testing.T) {
			w := newWorld(t, bus.Options{NotifyInTx: notify})
			w.install("one", bus.HandleTx(hears))
			w.listener()
			id := newID(t)
			all := []saga.Posting{
				{Message: shipped{}}, {Message: told{Sum: 1}},
				{Message: told{Sum: 2}, Options: []saga.SendOption{saga.Delay(time.Hour)}},
				{Message: told{Sum: 3}, Options: []saga.SendOption{saga.WithID(id)}},
				{Message: told{Sum: 4}, Options: []saga.SendOption{saga.WithHeader("who", "me")}},
				{Message: told{Sum: 5}, Options: []saga.SendOption{saga.At(time.Now().Add(2 * time.Hour))}},
				{Message: told{Sum: 3}, Options: []saga.SendOption{saga.WithID(id)}},
			}
			tx := w.begin()
			sent, err := w.bus.SendAllTx(t.Context(), tx, all)
			if err != nil || len(sent) != len(all) {
				t.Fatalf("%+v %v", sent, err)
			}
			w.commit(tx)
			for n, s := range sent {
				if last := n == len(all)-1; s.ID.IsZero() || s.Duplicate != last || (s.Copies == 1) == last {
					t.Errorf("message %d: %+v", n, s)
				}
			}
			w.want(1, `SELECT count(*) FROM `+w.queue("one")+` WHERE id = $1::text::uuid`, sent[0].ID.String())
			// commands with a statement of their own come behind the others, and the delayed commands last
			for n, at := range []int{1, 4, 3, 2, 5} {
				w.want(1, `SELECT count(*) FROM (SELECT id FROM `+w.queue("listener")+` ORDER BY due LIMIT 1 OFFSET `+
					fmt.Sprint(n)+`) q WHERE q.id = $1::text::uuid`, sent[at].ID.String())
			}
			w.want(1, `SELECT count(*) FROM `+w.queue("listener")+
				` WHERE position('"who":"me"' IN convert_from(header, 'UTF8')) > 0`)

			for story, bad := range map[string]saga.Posting{"no route": {Message: paid{}}, "no message": {}} {
				tx = w.begin()
				if _, err := w.bus.SendAllTx(t.Context(), tx,
					[]saga.Posting{{Message: told{Sum: 5}}, bad}); err == nil {
					t.Errorf("%s: no error", story)
				}
				_ = tx.Rollback(t.Context())
			}
			w.want(5, `SELECT count(*) FROM `+w.queue("listener"))
			if sent, err := w.bus.SendAllTx(t.Context(), nil, nil); err != nil || sent != nil {
				t.Errorf("of nothing: %v %v", sent, err)
			}
		})
	}
}
