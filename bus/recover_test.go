package bus_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

var errNo = errors.New("no")

// A counter in memory made twice the attempts in two processes. The count is in the row: 24 in all.
func TestAttemptsAreCountedInTheRow(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var ran atomic.Int64
	part := bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ add) error {
		if n := ran.Add(1); int(n) != ctx.Info().Attempt {
			t.Errorf("call %d is told that it is attempt %d", n, ctx.Info().Attempt)
		}
		return errNo
	})
	o := bus.EndpointOptions{Poll: 10 * time.Millisecond}
	w.start("fails", o, part)
	w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "fails", o, part)
	w.send(add{N: 1})
	w.untilEmptyHurrying("fails")
	if n := ran.Load(); n != 24 {
		t.Errorf("%d attempts, want 24", n)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE attempts = 24 AND error = 'no'
		AND reason = 'given up by the policy' AND first_failed IS NOT NULL`)
}

func TestWhatAHandlerMayReturn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		ends string
	}{
		"permanent": {saga.Permanent(errNo), `SELECT count(*) FROM edda.dead_letter WHERE attempts = 1
			AND reason = 'permanent'`},
		"discard": {saga.Discard("not today\x00"),
			`SELECT count(*) FROM edda.discarded WHERE reason LIKE 'not today%'`},
		"retry after": {saga.RetryAfter(time.Hour, errNo), `SELECT count(*) FROM edda.queue_1
			WHERE attempt = 1 AND due BETWEEN now() + interval '59 minutes' AND now() + interval '61 minutes'`},
		"unprintable": {errors.New("no \x00 \xff\xfe"),
			`SELECT count(*) FROM edda.dead_letter WHERE error LIKE 'no %' AND attempts = 1`},
		"a very long error": {errors.New(strings.Repeat("é", 1<<20)),
			`SELECT count(*) FROM edda.dead_letter WHERE octet_length(error) <= 8192`},
		"a message too many": {nil, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'permanent'
			AND position('no endpoint consumes it' IN error) > 0`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"handler", "saga"} {
				t.Run(kind, func(t *testing.T) {
					w := newWorld(t, bus.Options{})
					w.ledger()
					policy := func(f recoverability.Failure) recoverability.Decision {
						var after *saga.RetryAfterError
						if errors.As(f.Err, &after) {
							return recoverability.RetryIn(after.After)
						}
						return recoverability.DeadLetter()
					}
					part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
						if err := w.note(ctx, tx, m.N); err != nil {
							return err
						}
						if test.err == nil {
							ctx.Send(overdue{})
						}
						return test.err
					})
					if kind == "saga" {
						part = bus.Saga(saga.Define("tally", saga.Options{},
							saga.StartedBy(func(m add) string { return m.Key },
								func(_ *tally, ctx *saga.Context, _ add) error {
									if test.err == nil {
										ctx.Send(overdue{})
									}
									return test.err
								})))
					}
					w.start("ends", bus.EndpointOptions{Policy: policy}, part)
					w.send(add{Key: "a", N: 1})
					w.until("it has ended", func() bool { return w.count(test.ends) == 1 })
					w.want(0, `SELECT (SELECT count(*) FROM edda.saga) + (SELECT count(*) FROM edda.ledger)`) // undone
				})
			}
		})
	}
}

// worded is an error whose text panics, as one with a nil inside does.
type worded struct{ inner error }

func (e worded) Error() string { return "worded: " + e.inner.Error() }

func TestAnErrorWhoseTextPanicsIsADeadLetter(t *testing.T) {
	t.Parallel()
	parts := map[string]func() []bus.Part{
		"a transaction": func() []bus.Part {
			return []bus.Part{bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return saga.Permanent(worded{}) })}
		},
		"a lease": func() []bus.Part {
			return []bus.Part{bus.Handle(func(*bus.Context, add) error { return saga.Permanent(worded{}) })}
		},
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.start("fails", bus.EndpointOptions{}, part()...)
			w.send(add{N: 1})
			w.untilEmpty("fails")
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE position('PANIC' IN error) > 0`)
		})
	}
}

// The row of a message that waits for its retry has the text of its error.
func TestAnErrorWhoseTextPanicsIsRetried(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]bus.Part{
		"a transaction": bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return worded{} }),
		"a lease":       bus.Handle(func(*bus.Context, add) error { return worded{} }),
	} {
		t.Run(name, func(t *testing.T) {
			if pgdev.Apart(t) {
				return
			}
			w := newWorld(t, bus.Options{})
			w.start("fails", bus.EndpointOptions{Policy: recoverability.Always(recoverability.RetryIn(time.Hour))},
				part)
			w.send(add{N: 1})
			w.until("it waits for its retry", func() bool {
				return w.count(`SELECT count(*) FROM `+w.queue("fails")+
					` WHERE position('PANIC' IN last_error) > 0`) == 1
			})
		})
	}
}

// exiting is an error whose text ends the goroutine that reads it.
type exiting struct{}

func (exiting) Error() string {
	runtime.Goexit()
	return ""
}

// FailNow of package testing ends the goroutine of its caller, and so does runtime.Goexit. More handlers, or texts of
// their errors, do so than there are workers, as often as the policy allows; later messages are handled.
func TestAHandlerThatEndsItsGoroutineHasFailed(t *testing.T) {
	t.Parallel()
	const bad, all = 5, 25
	exits := func(m add) error {
		switch {
		case m.N > bad:
			return nil
		case m.N%2 == 0:
			return exiting{}
		}
		runtime.Goexit()
		return nil
	}
	parts := map[string]bus.Part{
		"a transaction": bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m add) error { return exits(m) }),
		"a lease":       bus.Handle(func(_ *bus.Context, m add) error { return exits(m) }),
		"a saga": bus.Saga(saga.Define("mines", saga.Options{}, saga.StartedBy(func(m add) string { return m.Key },
			func(_ *struct{}, _ *saga.Context, m add) error { return exits(m) }))),
	}
	policy, err := recoverability.Retries{Immediate: 1}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.start("exits", bus.EndpointOptions{Policy: policy, Concurrency: 2, Poll: 10 * time.Millisecond}, part)
			for n := 1; n <= all; n++ {
				w.send(add{Key: fmt.Sprint("k", n), N: n})
			}
			w.untilEmpty("exits")
			w.want(bad, `SELECT count(*) FROM edda.dead_letter WHERE attempts = 2
				AND error LIKE 'the handler ended its goroutine%'`)
			w.want(bad, `SELECT count(*) FROM edda.dead_letter`)
		})
	}
}

// The log has the stack of a panic, once for each place, and each dead letter has the innermost functions.
func TestAPanicSaysWhere(t *testing.T) {
	t.Parallel()
	var numbers map[int]int // nil
	parts := map[string]bus.Part{
		"a transaction": bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m add) error { numbers[m.N]++; return nil }),
		"a lease":       bus.Handle(func(_ *bus.Context, m add) error { numbers[m.N]++; return nil }),
		"a saga": bus.Saga(saga.Define("sums", saga.Options{}, saga.StartedBy(func(m add) string { return m.Key },
			func(_ *struct{}, _ *saga.Context, m add) error { numbers[m.N]++; return nil }))),
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			log := &kept{}
			w := newWorld(t, bus.Options{Logger: log.logger()})
			w.fill("panics", part, 1, 2, 3)
			w.start("panics", bus.EndpointOptions{Policy: once}, part)
			w.untilEmpty("panics")
			w.want(3, `SELECT count(*) FROM edda.dead_letter WHERE
				error ~ '^panic: assignment to entry in nil map\nat [^\n]*TestAPanicSaysWhere.*recover_test.go:[0-9]+'`)
			w.want(1, `SELECT count(DISTINCT error_group) FROM edda.dead_letter`)
			w.want(0, `SELECT count(*) FROM edda.dead_letter
				WHERE length(error) - length(replace(error, E'\nat ', '123')) > 10`)
			if n := strings.Count(log.String(), "a handler panicked"); n != 1 {
				t.Errorf("%d lines of the log say where it panicked, want 1", n)
			}
		})
	}
}

// Functions of the user also run in a leased endpoint before a handler begins: if one of them ends its goroutine, the
// endpoint still claims messages.
func TestAFunctionThatEndsItsGoroutineStopsNoClaims(t *testing.T) {
	t.Parallel()
	exits := func(m add) add {
		if m.N == 2 {
			runtime.Goexit()
		}
		return m
	}
	all := map[string]struct {
		o     bus.EndpointOptions
		parts func(handle func(*bus.Context, add) error) []bus.Part
	}{
		"the key of an ordered endpoint": {bus.EndpointOptions{Ordered: bus.Strict},
			func(handle func(*bus.Context, add) error) []bus.Part {
				return []bus.Part{bus.Handle(handle, bus.KeyedBy(func(m add) string { return exits(m).Key }))}
			}},
		"an Accept": {bus.EndpointOptions{}, func(handle func(*bus.Context, add) error) []bus.Part {
			return []bus.Part{bus.Handle(handle),
				bus.Accept(func(m addV1) (add, error) { return exits(add{Key: "k", N: len(m.Name)}), nil })}
		}},
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			var handled atomic.Int64
			c.o.Poll = 10 * time.Millisecond
			w.start("exits", c.o, c.parts(func(*bus.Context, add) error { handled.Add(1); return nil })...)
			for n := 1; n <= 6; n++ {
				if name == "an Accept" {
					w.send(addV1{Name: strings.Repeat("x", n)})
				} else {
					w.send(add{Key: "k", N: n})
				}
			}
			w.untilEmpty("exits")
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'permanent'
				AND error LIKE '%ended its goroutine%'`)
			if n := handled.Load(); n != 5 {
				t.Errorf("%d messages were handled, want 5", n)
			}
		})
	}
}

// The methods that judge an error are a user's, too: if they panic, only this message has failed.
func TestAnErrorThatPanicsWhenItIsJudgedIsAFailure(t *testing.T) {
	t.Parallel()
	parts := map[string]bus.Part{
		"a transaction": bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return mine{} }),
		"a lease":       bus.Handle(func(*bus.Context, add) error { return fmt.Errorf("in a tunnel: %w", mine{}) }),
		"bytes":         bus.HandleRaw(func(*bus.Context, *saga.Delivery) error { return mine{} }, add{}.Kind()),
		"a saga": bus.Saga(saga.Define("mines", saga.Options{}, saga.StartedBy(func(m add) string { return m.Key },
			func(*struct{}, *saga.Context, add) error { return mine{} }))),
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			if pgdev.Apart(t) {
				return
			}
			w := newWorld(t, bus.Options{})
			w.start("fails", bus.EndpointOptions{Policy: once}, part)
			w.send(add{Key: "a", N: 1})
			w.untilEmpty("fails")
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE position('panic: it goes off' IN error) > 0
				AND attempts = 1`)
		})
	}
}

// The policy itself panics, or decides nothing: the message is kept, and the reason names the policy.
func TestBrokenPolicyKeepsTheMessage(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	policies := map[string]recoverability.Policy{
		"panics":          func(recoverability.Failure) recoverability.Decision { panic("oops") },
		"decides nothing": func(recoverability.Failure) recoverability.Decision { return nil },
		"exits":           func(recoverability.Failure) recoverability.Decision { runtime.Goexit(); return nil },
		"never returns":   func(recoverability.Failure) recoverability.Decision { <-over; return nil },
	}
	fails := func(m add) error {
		if m.N == 1 {
			return errNo
		}
		return nil
	}
	parts := map[string]bus.Part{
		"a transaction": bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m add) error { return fails(m) }),
		"a lease":       bus.Handle(func(_ *bus.Context, m add) error { return fails(m) }),
	}
	for name, policy := range policies {
		for kind, part := range parts {
			t.Run(name+"/"+kind, func(t *testing.T) {
				w := newWorld(t, bus.Options{})
				w.fill("fails", part, 1, 2, 3)
				w.start("fails", bus.EndpointOptions{Policy: policy, StepTimeout: time.Second, Concurrency: 1}, part)
				w.untilEmpty("fails")
				w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'the policy failed'
					AND position('recoverability policy' IN error) > 0 AND attempts = 1`)
				w.want(1, `SELECT count(*) FROM edda.dead_letter`)
			})
		}
	}
}

// The first instances of a saga have states that make its Upcast end the goroutine. The other instances are handled.
func TestAnUpcastThatEndsItsGoroutineBlamesItsOwnMessage(t *testing.T) {
	const bad, all = 3, 12
	w := newWorld(t, bus.Options{})
	define := func(version int, more ...saga.Part[tally]) bus.Part {
		started := saga.StartedBy(func(m add) string { return m.Key },
			func(s *tally, _ *saga.Context, m add) error { s.Sum = m.N; return nil })
		return bus.Saga(saga.Define("tally", saga.Options{StateVersion: version}, append(more, started)...))
	}
	send := func() {
		for n := 1; n <= all; n++ {
			w.send(add{Key: fmt.Sprint("k", n), N: n})
		}
	}
	stop := w.start("tallies", bus.EndpointOptions{}, define(1))
	send()
	w.untilEmpty("tallies")
	stop()
	send()
	w.start("tallies", bus.EndpointOptions{Policy: once, Concurrency: 2}, define(2, saga.Upcast(1,
		func(old tally) (tally, error) {
			if old.Sum <= bad {
				runtime.Goexit()
			}
			return old, nil
		})))
	w.untilEmpty("tallies")
	w.want(bad, `SELECT count(*) FROM edda.dead_letter`)
	w.want(all-bad, `SELECT count(*) FROM edda.saga WHERE state_version = 2`)
}

// Framework errors did not count, without a limit: a handler whose own SQL always fails that way, or breaks its
// connection, was repeated for ever, with its neighbours.
func TestEndlessTroubleBecomesAFailure(t *testing.T) {
	t.Parallel()
	troubles := map[string]string{
		"serialization": `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'trouble'; END $$`,
		"deadlock":      `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01', MESSAGE = 'trouble'; END $$`,
		"cancelled":     `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014', MESSAGE = 'trouble'; END $$`,
		"lost":          `SELECT pg_terminate_backend(pg_backend_pid())`,
	}
	for name, sql := range troubles {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.ledger()
			part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
				if m.N == 3 {
					_, err := tx.Exec(ctx, sql)
					return err
				}
				return w.note(ctx, tx, m.N)
			})
			w.fill("notes", part, 1, 2, 3, 4, 5)
			w.start("notes", bus.EndpointOptions{Policy: once}, part)
			w.untilEmpty("notes")
			if got := w.noted(); got != "1 2 4 5" {
				t.Errorf("noted %q, want %q", got, "1 2 4 5")
			}
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE attempts = 1`)
		})
	}
}

// A rolling deploy: the message comes before the program that handles its kind. It waits, and no attempt is counted.
func TestUnknownKindWaitsForAProgramThatKnowsIt(t *testing.T) {
	w := newWorld(t, bus.Options{})
	old := bus.HandleTx(func(*bus.Context, pgx.Tx, paid) error { return nil })
	stop := w.start("deploy", bus.EndpointOptions{Policy: once}, old)
	w.send(add{N: 1}, saga.To("deploy"))
	w.until("the old program has put it back", func() bool {
		return w.count(`SELECT count(*) FROM `+w.queue("deploy")+
			` WHERE attempt = 0 AND first_failed IS NOT NULL AND due > now()`) == 1
	})
	stop()
	unknown, err := w.operator().Endpoints().Unhandled(t.Context(), "deploy")
	if err != nil || len(unknown) != 1 || unknown[0].Kind != "tally.add" || unknown[0].Messages != 1 {
		t.Errorf("unknown kinds: %+v %v, want one message of tally.add", unknown, err)
	}
	done := make(chan int, 1)
	w.start("deploy", bus.EndpointOptions{Policy: once}, old,
		bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ add) error {
			done <- ctx.Info().Attempt
			return nil
		}))
	w.hurry("deploy")
	w.untilEmptyHurrying("deploy")
	if n := await(w, "the new program", done); n != 1 {
		t.Errorf("attempt %d, want 1", n)
	}
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
}

func TestKindThatNobodyEverKnowsIsADeadLetter(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("deploy", bus.EndpointOptions{UnknownKindTimeout: 20 * time.Millisecond},
		bus.HandleTx(func(*bus.Context, pgx.Tx, paid) error { return nil }))
	w.send(add{Key: "a", N: 1}, saga.To("deploy"))
	w.untilEmpty("deploy")
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'unknown kind' AND attempts = 0
		AND convert_from(body, 'UTF8') = '{"Key":"a","N":1}' AND position('card.paid' IN error) > 0`)
}

// A header from a newer program waits for a worker that can read it; a value that is no header becomes a dead letter at
// once, with its bytes.
func TestHeadersThatCannotBeRead(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("deploy", bus.EndpointOptions{}, bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }))
	w.newer("deploy", "tally.add")
	w.until("it waits", func() bool {
		return w.count(`SELECT count(*) FROM `+w.queue("deploy")+
			` WHERE attempt = 0 AND first_failed IS NOT NULL`) == 1
	})
	w.exec(`DELETE FROM ` + w.queue("deploy"))
	w.exec(`INSERT INTO ` + w.queue("deploy") +
		` (due, id, kind, header, body) VALUES (now(), gen_random_uuid(), 'tally.add', E'\\xff00', E'\\x00ff')`)
	w.untilEmpty("deploy")
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'permanent' AND header = E'\\xff00'
		AND body = E'\\x00ff'`)
}

// newer puts a message into a queue whose header has the version of a newer program. The function send refuses it, but
// a role that may insert needs no function.
func (w *world) newer(endpoint, kind string) saga.ID {
	w.t.Helper()
	id := newID(w.t)
	w.exec(`INSERT INTO `+w.queue(endpoint)+` (due, id, kind, header, body) VALUES (clock_timestamp(), $1, $2, `+
		`'{"edda-version":"2"}', '{}')`, [16]byte(id), kind)
	return id
}

// Each take of a message of an unknown kind rewrites its row. A hundred thousand of them must not keep the database
// busy.
func TestUnknownKindIsLookedAtLessAndLess(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.install("deploy", bus.HandleTx(hears))
	w.exec(`INSERT INTO ` + w.queue("deploy") + ` (due, id, kind, header, body, first_failed)
		VALUES (now(), gen_random_uuid(), 'not.known', '{}', '{}', now() - interval '2 minutes')`)
	w.start("deploy", bus.EndpointOptions{}, bus.HandleTx(hears))
	w.until("it was put back", func() bool {
		return w.count(`SELECT count(*) FROM `+w.queue("deploy")+
			` WHERE due > now()`) == 1
	})
	w.want(1, `SELECT count(*) FROM `+w.queue("deploy")+
		` WHERE due > now() + interval '10 seconds' AND due < now() + interval '1 minute'`)
}

// Any program that may write to a queue can write the version of a newer program. Such a message waits for
// UnknownKindTimeout, and no longer.
func TestNewerHeaderThatNobodyReadsIsADeadLetter(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]bus.Part{
		"a transaction": bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }),
		"a lease":       bus.Handle(func(*bus.Context, add) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			stop := w.start("deploy", bus.EndpointOptions{}, part)
			stop()
			w.newer("deploy", "tally.add")
			w.start("deploy", bus.EndpointOptions{UnknownKindTimeout: 20 * time.Millisecond}, part)
			w.untilEmpty("deploy")
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'newer program' AND attempts = 0
				AND convert_from(header, 'UTF8') = '{"edda-version":"2"}'`)
		})
	}
}

// A body that cannot be decoded becomes a dead letter on its first attempt, even if the policy would retry it.
func TestUnreadableBodyDiesAtOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("reads", bus.EndpointOptions{}, bus.HandleTx(func(*bus.Context, pgx.Tx, paid) error { return nil }),
		bus.Saga(tallies(saga.Pessimistic, nil)))
	w.raw("tally.add", `{"Key":`, `{}`, "reads")
	w.raw("card.paid", `[]`, `{}`, "reads")
	w.raw("tally.add", `{"Key":""}`, `{}`, "reads")
	w.untilEmpty("reads")
	w.want(3, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'permanent' AND attempts = 1`)
}

// A dead letter is sent again with its id and bytes and without attempts; once, even if several callers retry it.
func TestDeadLetterIsSentAgainOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var fixed atomic.Bool
	got := make(chan saga.Info, 2)
	w.start("fails", bus.EndpointOptions{Policy: once}, bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ add) error {
		if !fixed.Load() {
			return errNo
		}
		got <- ctx.Info()
		return nil
	}))
	sent := w.send(add{N: 1}, saga.WithHeader("who", "me"))
	w.untilEmpty("fails")
	fixed.Store(true)
	letters := w.operator().DeadLetters()
	number := int64(w.count(`SELECT id FROM edda.dead_letter`))
	if err := letters.RetryTo(t.Context(), number, "nowhere"); !errors.Is(err, bus.ErrNoRoute) ||
		!errors.Is(err, operate.ErrUndeliverable) {
		t.Errorf("%v, want ErrNoRoute and ErrUndeliverable", err)
	}
	if err := letters.Retry(t.Context(), number); err != nil {
		t.Fatal(err)
	}
	if err := letters.Retry(t.Context(), number); !errors.Is(err, operate.ErrNoLetter) {
		t.Errorf("%v, want ErrNoLetter", err)
	}
	info := await(w, "the message", got)
	if info.ID != sent.ID || info.Attempt != 1 || info.Header("who") != "me" {
		t.Errorf("%+v, want id %s, attempt 1, its header", info, sent.ID)
	}
	w.untilEmpty("fails")
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
}

// All bodies of a full batch were in memory at once.
func TestLargeBodiesAreReadInTurn(t *testing.T) {
	w := newWorld(t, bus.Options{})
	sum := 0 // by the one worker
	part := bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m place) error { sum += len(m.Order); return nil })
	w.install("reads", part)
	const size, messages = 400_000, 12
	for range messages {
		w.send(place{Order: strings.Repeat("x", size)})
	}
	stop := w.start("reads", bus.EndpointOptions{Concurrency: 1, BatchBytes: 1 << 20, BatchTime: 5 * time.Second}, part)
	w.untilEmpty("reads")
	stop()
	if sum != size*messages {
		t.Errorf("read %d bytes, want %d", sum, size*messages)
	}
	batches := eventsOf[event.BatchDone](w)
	for _, e := range batches {
		if e.Taken > 2 {
			t.Errorf("a batch had %d bodies of %d bytes, with room for 2", e.Taken, size)
		}
	}
	if n := len(batches); n > messages/2+1 {
		t.Errorf("%d batches for %d messages, with room for 2 in each", n, messages)
	}
}

// Free conflicts are limited: a message whose instance is changed concurrently each time reaches the policy.
func TestConflictsHaveABudget(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	def := tallies(saga.Optimistic, nil)
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'tally', 'a', 1, 1, '{"Sum":0}')`)
	w.install("tallies", bus.Saga(def))
	w.send(add{Key: "a", N: 1})
	w.exec(`UPDATE ` + w.queue("tallies") + ` SET conflict = 10`)
	changing := bus.Use(func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			if len(eventsOf[event.DeadLettered](w)) == 0 {
				_, err := w.pool.Exec(ctx, w.sql(`UPDATE edda.saga SET version = version + 1`))
				if err != nil {
					return fmt.Errorf("change it first: %w", err)
				}
			}
			return next(ctx, d)
		}
	})
	w.start("tallies", bus.EndpointOptions{Policy: once}, bus.Saga(def), changing)
	w.untilEmpty("tallies")
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'conflicts'`)
	w.want(0, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
}
