package operate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

type (
	placed struct{ Order string }
	member struct {
		N    int
		Card string `edda:"secret"`
	}
)

func (placed) Kind() string { return "order.place" }

var members = saga.Define("order", saga.Options{}, saga.StartedBy(func(m placed) string { return m.Order },
	func(*member, *saga.Context, placed) error { return nil }))

var everyOrder = operate.InstanceFilter{Saga: "order"}

// crowd is a schema with many instances of order, and an operator.
type crowd struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	op     operate.Instances
	log    *operate.Operator
}

func newCrowd(t *testing.T, keys ...string) *crowd {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.OddDatabase(t)
	c := &crowd{T: t, pool: pool, schema: schema}
	owner, err := operate.New(pgtest.Pool(t), operate.Options{Schema: schema.Name()})
	c.must(err)
	c.must(owner.Queues().Install(t.Context(), "orders", "order.nudge"))
	c.log = c.operator(operate.Options{})
	c.op = c.log.Instances()
	c.begin(keys...)
	return c
}

func (c *crowd) operator(options operate.Options) *operate.Operator {
	c.Helper()
	options.Schema = c.schema.Name()
	o, err := operate.New(c.pool, options)
	c.must(err)
	return o
}

func (c *crowd) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *crowd) exec(sql string, args ...any) {
	c.Helper()
	pgtest.Exec(c, c.pool, c.schema.Render(sql), args...)
}

// begin starts instances.
func (c *crowd) begin(keys ...string) {
	c.Helper()
	c.exec(`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'order', k, 1, 1, '{"N":7,"Card":"4711"}' FROM unnest($1::text[]) k`, keys)
}

func (c *crowd) count(sql string) (n int) {
	c.Helper()
	c.must(c.pool.QueryRow(c.Context(), c.schema.Render(sql)).Scan(&n))
	return n
}

// living returns the keys of the instances.
func (c *crowd) living() (keys string) {
	c.Helper()
	c.must(c.pool.QueryRow(c.Context(), c.schema.Render(`SELECT coalesce(string_agg(key, ' ' ORDER BY key), '')
		FROM :schema.saga`)).Scan(&keys))
	return keys
}

func (c *crowd) entries(verb string) []operate.AuditEntry {
	c.Helper()
	all, err := c.log.Audit(c.Context(), operate.AuditFilter{Verb: verb})
	c.must(err)
	return all
}

// numbered returns n keys.
func numbered(n int) (keys []string) {
	for k := range n {
		keys = append(keys, fmt.Sprintf("load-%05d", k))
	}
	return keys
}

// Preview counts the instances that a filter selects, over pages and up to its limit, and lists the first of them.
func TestPreview(t *testing.T) {
	c := newCrowd(t, append(numbered(450), "real-1")...)
	c.exec(`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state) VALUES
		(gen_random_uuid(), 'orders', 'load-1', 1, 1, '{}')`)
	look, err := c.op.Preview(t.Context(), operate.InstanceFilter{Saga: "order", Prefix: "load-"})
	if err != nil || look.Count != 450 || look.Capped || len(look.First) != 10 || look.Until.IsZero() ||
		look.First[9].Instance.Key != "load-00009" {
		t.Errorf("%+v, %v", look, err)
	}
	c.begin("load-9")
	for want, f := range map[int64]operate.InstanceFilter{
		451: {Saga: "order", Until: look.Until}, 452: {Saga: "order"}, 1: {Saga: "order", After: "load-9"},
		50: {Saga: "order", Prefix: "load-", After: "load-00399", Until: look.Until}, 0: {Saga: "orde"},
	} {
		if look, err := c.op.Preview(t.Context(), f); err != nil || look.Count != want {
			t.Errorf("%+v chooses %d, want %d; %v", f, look.Count, want, err)
		}
	}
	c.begin(numbered(10_001)[450:]...)
	if look, err := c.op.Preview(t.Context(), everyOrder); err != nil || !look.Capped ||
		look.Count != 10_000 {
		t.Errorf("%d, capped %v, %v", look.Count, look.Capped, err)
	}
	if _, err := c.op.Preview(t.Context(), operate.InstanceFilter{}); err == nil {
		t.Error("a filter without a saga was taken")
	}
}

// The selected instances end, each with its audit entry. Instances that began later, that are only remembered, or
// whose rows cannot be read stay, like all that the filter does not select.
func TestEndAll(t *testing.T) {
	c := newCrowd(t, "load-1", "load-2", "load-3", "load-4", "real-1")
	c.exec(`UPDATE :schema.saga SET timeouts = '[1]' WHERE key = 'load-3'`)
	c.exec(`UPDATE :schema.saga SET timeouts = '[{"kind":"edda.forget","due":"2099-01-01T00:00:00Z",
		"id":"0198c0de-0000-7000-8000-000000000008"}]' WHERE key = 'load-4'`)
	f := operate.InstanceFilter{Saga: "order", Prefix: "load-"}
	look, err := c.op.Preview(t.Context(), f)
	c.must(err)
	c.begin("load-5")
	f.Until = look.Until
	ctx := operate.WithActor(t.Context(), operate.Actor{Name: "ann"})
	seen := 0
	progress := func(d operate.Progress) {
		if seen++; d.Last != fmt.Sprint("load-", seen) {
			t.Errorf("after %d it is at %q", seen, d.Last)
		}
	}
	done, err := c.op.EndAll(ctx, f,
		operate.ManyOptions{Reason: "a load test", Definition: members, Progress: progress})
	if err != nil || look.Count != 3 || done.Done != 2 || done.Gone != 0 || done.Kept != 1 ||
		!strings.Contains(done.Error, "cannot be read") {
		t.Errorf("%+v, %v", done, err)
	}
	if left := c.living(); left != "load-3 load-4 load-5 real-1" {
		t.Errorf("left are %s", left)
	}
	all := c.entries("saga.end")
	if len(all) != 2 || all[0].Target != "order/load-2" || all[0].Actor != "ann" || all[0].Reason != "a load test" ||
		strings.Contains(string(all[0].Before), "4711") {
		t.Errorf("%+v", all)
	}
}

// After an interrupted call Done has the completed instances, and the next call continues after them.
func TestInterruptedEndGoesOn(t *testing.T) {
	c := newCrowd(t, numbered(6)...)
	ctx, interrupt := context.WithCancel(t.Context())
	f := everyOrder
	done, err := c.op.EndAll(ctx, f, operate.ManyOptions{Reason: "x", Progress: func(d operate.Progress) {
		if d.Done == 2 {
			interrupt()
		}
	}})
	if !errors.Is(err, context.Canceled) || done.Done != 2 || done.Last != "load-00001" {
		t.Errorf("%+v, %v", done, err)
	}
	c.exec("DELETE FROM :schema.saga WHERE key = 'load-00003'")
	f.After = "load-00002"
	if done, err = c.op.EndAll(t.Context(), f, operate.ManyOptions{Reason: "x"}); err != nil || done.Done != 2 ||
		c.living() != "load-00002" {
		t.Errorf("%+v, %v, and %s is left", done, err, c.living())
	}
}

// A call that is interrupted while it skips instances continues after them, not before them.
func TestInterruptedCallHasSkipped(t *testing.T) {
	c := newCrowd(t, "a", "b", "c", "d")
	c.exec(`UPDATE :schema.saga SET timeouts = '[{"kind":"edda.forget","due":"2099-01-01T00:00:00Z",
		"id":"0198c0de-0000-7000-8000-000000000008"}]' WHERE key IN ('b', 'c')`)
	ctx, interrupt := context.WithCancel(t.Context())
	done, err := c.op.EndAll(ctx, everyOrder,
		operate.ManyOptions{Progress: func(operate.Progress) { interrupt() }})
	if !errors.Is(err, context.Canceled) || done.Done != 1 || done.Last != "c" {
		t.Errorf("%+v, %v", done, err)
	}
}

// Another operator may end an instance that is about to be ended.
func TestInstancesThatAreGoneAreCounted(t *testing.T) {
	c := newCrowd(t, numbered(4)...)
	nudge := operate.OutgoingMessage{Kind: "order.nudge", Body: []byte(`{}`)}
	for name, do := range map[string]func(progress func(operate.Progress)) (operate.Progress, error){
		"send": func(progress func(operate.Progress)) (operate.Progress, error) {
			return c.op.SendAll(t.Context(), everyOrder, nudge, operate.ManyOptions{Progress: progress})
		},
		"end": func(progress func(operate.Progress)) (operate.Progress, error) {
			return c.op.EndAll(t.Context(), everyOrder, operate.ManyOptions{Progress: progress})
		},
	} {
		c.exec("DELETE FROM :schema.saga")
		c.begin(numbered(4)...)
		done, err := do(func(d operate.Progress) {
			if d.Last == "load-00000" {
				c.exec("DELETE FROM :schema.saga WHERE key = 'load-00002'")
			}
		})
		if err != nil || done.Done != 3 || done.Gone != 1 || done.Last != "load-00003" {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
	}
}

// An instance may end, and its key start again, before its turn: the new one began after Preview, and is not changed.
func TestInstancesThatBeganAnewAreGone(t *testing.T) {
	nudge := operate.OutgoingMessage{Kind: "order.nudge", Body: []byte(`{}`)}
	for name, do := range map[string]func(c *crowd, first func()) (operate.Progress, error){
		"send": func(c *crowd, first func()) (operate.Progress, error) {
			return c.op.SendAll(t.Context(), everyOrder, nudge,
				operate.ManyOptions{Progress: func(operate.Progress) { first() }})
		},
		"end": func(c *crowd, first func()) (operate.Progress, error) {
			return c.op.EndAll(t.Context(), everyOrder,
				operate.ManyOptions{Progress: func(operate.Progress) { first() }})
		},
		"export": func(c *crowd, first func()) (operate.Progress, error) {
			return c.op.Export(t.Context(), everyOrder, operate.ManyOptions{}, func(persistence.Listed) error {
				first()
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, "a", "b", "c")
			done, err := do(c, sync.OnceFunc(func() {
				c.exec("DELETE FROM :schema.saga WHERE key = 'b'")
				c.begin("b")
			}))
			if err != nil || done.Done != 2 || done.Gone != 1 || done.Last != "c" {
				t.Errorf("%+v, %v", done, err)
			}
			if left := c.living(); name == "end" && left != "b" {
				t.Errorf("left are %s", left)
			}
			if n := c.count("SELECT count(*) FROM :schema.queue_1"); name == "send" && n != 2 {
				t.Errorf("%d messages, want 2", n)
			}
		})
	}
}

// Each instance receives the message of a job once, even if calls are interrupted and repeated.
func TestSendReachesEachOnce(t *testing.T) {
	c := newCrowd(t, numbered(5)...)
	o := operate.ManyOptions{Job: saga.ID(uuid.Must(uuid.NewV7())), Reason: "they slept"}
	m := operate.OutgoingMessage{Kind: "order.nudge", Body: []byte(`{"a":1}`), Delay: time.Hour}
	ctx, interrupt := context.WithCancel(operate.WithActor(t.Context(), operate.Actor{Name: "ann"}))
	interrupted := o
	interrupted.Progress = func(d operate.Progress) {
		if d.Done == 3 {
			interrupt()
		}
	}
	done, err := c.op.SendAll(ctx, everyOrder, m, interrupted)
	if !errors.Is(err, context.Canceled) || done.Done != 3 || c.count("SELECT count(*) FROM :schema.queue_1") != 3 {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err := c.op.SendAll(t.Context(), everyOrder, m, o); err != nil || done.Done != 5 {
		t.Errorf("%+v, %v", done, err)
	}
	got := c.count(`SELECT count(DISTINCT convert_from(header, 'UTF8')::json ->> 'edda-instance')
		FROM :schema.queue_1 q JOIN :schema.saga s ON s.iid::text = convert_from(q.header, 'UTF8')::json ->>
			'edda-instance' WHERE q.due > now() + interval '50 minutes' AND q.body = '{"a":1}'`)
	if all := c.count("SELECT count(*) FROM :schema.queue_1"); got != 5 || all != 5 {
		t.Errorf("%d messages for %d instances, want 5", all, got)
	}
	if e := c.entries("message.send"); len(e) != 5 || e[4].Actor != "ann" || e[4].Reason != "they slept" ||
		!strings.Contains(string(e[4].After), `"order/load-00000"`) {
		t.Errorf("%+v", e)
	}
	o.Job = saga.ID{}
	last := operate.InstanceFilter{Saga: "order", After: "load-00003"}
	if _, err := c.op.SendAll(t.Context(), last, m, o); err != nil ||
		c.count("SELECT count(*) FROM :schema.queue_1") != 6 {
		t.Errorf("a new job has sent nothing: %v", err)
	}
	m.Kind = "order.nobody"
	if done, err := c.op.SendAll(t.Context(), everyOrder, m, o); !errors.Is(err, operate.ErrNoRoute) ||
		done.Done != 0 || done.Last != "" {
		t.Errorf("%+v, %v", done, err)
	}
}

// An export has the states without their secrets, and its audit entry is written before the first state is returned.
func TestExport(t *testing.T) {
	c := newCrowd(t, "load-1", "load-2", "load-3", "real-1")
	f := operate.InstanceFilter{Saga: "order", Prefix: "load-"}
	var keys []string
	see := func(l persistence.Listed) error {
		if len(keys) == 0 {
			if e := c.entries("saga.export"); len(e) != 1 || e[0].Target != "order" ||
				e[0].Reason != "for the auditors" || !strings.Contains(string(e[0].After), `"instances":3`) ||
				!strings.Contains(string(e[0].After), `"prefix":"load-"`) ||
				strings.Contains(string(e[0].After), "capped") {
				t.Errorf("the audit says %+v", e)
			}
			c.exec("DELETE FROM :schema.saga WHERE key = 'load-2'")
		}
		keys = append(keys, l.Instance.Key)
		state := member{}
		if err := json.Unmarshal(l.Instance.State, &state); err != nil || state.N != 7 || state.Card != "[secret]" {
			t.Errorf("%s, %v", l.Instance.State, err)
		}
		return nil
	}
	done, err := c.op.Export(t.Context(), f,
		operate.ManyOptions{Reason: "for the auditors", Definition: members, Max: 3}, see)
	if err != nil || done.Done != 2 || done.Gone != 1 || strings.Join(keys, " ") != "load-1 load-3" {
		t.Errorf("%+v, %v, %v", done, err, keys)
	}
	c.begin("load-4", "load-5")
	if _, err := c.op.Export(t.Context(), f, operate.ManyOptions{Max: 3}, see); !errors.Is(err, operate.ErrTooMany) ||
		len(c.entries("saga.export")) != 1 {
		t.Errorf("%v, want ErrTooMany", err)
	}
	broken := errors.New("the disk is full")
	_, err = c.op.Export(t.Context(), f, operate.ManyOptions{}, func(persistence.Listed) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("%v, want that the disk is full", err)
	}
}

// Without a definition and a history the secrets are unknown: an export has no states, unless Unmasked is set.
func TestExportOfUnknownSecrets(t *testing.T) {
	c := newCrowd(t, "1")
	bare := c.operator(operate.Options{Unmasked: true}).Instances()
	states := func(op operate.Instances) (text string) {
		_, err := op.Export(t.Context(), everyOrder, operate.ManyOptions{}, func(l persistence.Listed) error {
			text += string(l.Instance.State)
			return nil
		})
		c.must(err)
		return text
	}
	if text := states(c.op); text != "" {
		t.Errorf("it exports %s", text)
	}
	if text := states(bare); !strings.Contains(text, "4711") {
		t.Errorf("unmasked it exports %s", text)
	}
	e := c.entries("saga.export")
	if len(e) != 2 || !strings.Contains(string(e[0].After), `"unmasked":true`) ||
		strings.Contains(string(e[1].After), "unmasked") {
		t.Errorf("%+v", e)
	}
}

// The audit entry of an export does not claim 10,000 instances if the count ended at its limit.
func TestExportOfManyIsNotCountedToItsEnd(t *testing.T) {
	c := newCrowd(t, numbered(10_000)...)
	enough := errors.New("it is enough")
	_, err := c.op.Export(t.Context(), everyOrder, operate.ManyOptions{}, func(persistence.Listed) error {
		return enough
	})
	if e := c.entries("saga.export"); !errors.Is(err, enough) || len(e) != 1 ||
		!strings.Contains(string(e[0].After), `"capped":true`) {
		t.Errorf("%v, %+v", err, e)
	}
}
