package operate_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

type work struct {
	N int `json:"n"`
}

func (work) Kind() string { return "work" }

// installed is a schema with the queue of the endpoint "tasks", which is subscribed to work.
func installed(t *testing.T) (*operate.Operator, *pgxpool.Pool, string) {
	t.Helper()
	pool, schema := pgtest.Database(t)
	o, err := operate.New(pool, operate.Options{Schema: schema.Name()})
	if err == nil {
		err = o.Queues().Install(t.Context(), "tasks", work{}.Kind())
	}
	if err != nil {
		t.Fatal(err)
	}
	return o, pool, schema.Name()
}

// send writes messages into the queue of "tasks", which no process consumes.
func send(t *testing.T, pool *pgxpool.Pool, schema string, n int) {
	t.Helper()
	b, err := bus.New(pool, bus.Options{Schema: schema, Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	for i := 0; i < n && err == nil; i++ {
		_, err = b.Send(t.Context(), work{N: i})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestQueuesAreCounted(t *testing.T) {
	t.Parallel()
	o, pool, schema := installed(t)
	if err := o.Queues().InstallRelay(t.Context(), "abroad"); err != nil {
		t.Fatal(err)
	}
	send(t, pool, schema, 3)
	queues, err := o.Queues().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(queues) != 2 || queues[0].Endpoint != "abroad" || !queues[0].Relay || queues[0].Ready != 0 {
		t.Fatalf("the queues are %+v, want an empty relay and the tasks", queues)
	}
	if q := queues[1]; q.Endpoint != "tasks" || q.Relay || q.Ready != 3 || len(q.Kinds) != 1 || q.OldestDue.IsZero() {
		t.Errorf("the queue is %+v, want 3 messages of kind work", q)
	}
	if _, suffers, err := o.Queues().Pin(t.Context()); err != nil || suffers {
		t.Errorf("a small schema suffers: %v, %v", suffers, err)
	}
}

func TestMessagesAreFoundAndCancelled(t *testing.T) {
	t.Parallel()
	o, pool, schema := installed(t)
	send(t, pool, schema, 3)
	first, err := o.Messages().Peek(t.Context(), "tasks", operate.PeekOptions{Limit: 1})
	if err != nil || len(first) != 1 {
		t.Fatalf("the first page is %+v, %v", first, err)
	}
	rest, err := o.Messages().Peek(t.Context(), "tasks",
		operate.PeekOptions{AfterDue: first[0].Info.Due, AfterID: first[0].Info.ID})
	if err != nil || len(rest) != 2 {
		t.Fatalf("the second page is %+v, %v, want the other two", rest, err)
	}
	var body work
	if err := json.Unmarshal(rest[1].Body, &body); err != nil || body.N != 2 {
		t.Errorf("the last body is %q, %v", rest[1].Body, err)
	}
	id := first[0].Info.ID
	found, err := o.Messages().Show(t.Context(), id, 1)
	if err != nil || len(found) != 1 || found[0].Endpoint != "tasks" || len(found[0].Body) != 1 || found[0].Size < 2 {
		t.Errorf("the message is %+v, %v, want one byte of its body", found, err)
	}
	did, err := o.Messages().Cancel(t.Context(), "tasks", id, "a test")
	if err != nil || did != operate.CancelledWaiting {
		t.Errorf("cancelling a message that waits is %v, %v", did, err)
	}
	if _, err := o.Messages().Show(t.Context(), id, 0); !errors.Is(err, operate.ErrNotFound) {
		t.Errorf("showing what was cancelled is %v, want ErrNotFound", err)
	}
	if _, err := o.Messages().Cancel(t.Context(), "tasks", id, ""); !errors.Is(err, operate.ErrNotFound) {
		t.Errorf("cancelling it again is %v, want ErrNotFound", err)
	}
}

func TestEndpointsArePausedAndGivenWorkers(t *testing.T) {
	t.Parallel()
	o, _, _ := installed(t)
	e := o.Endpoints()
	if err := errors.Join(e.Pause(t.Context(), "tasks", "a test"),
		e.SetConcurrency(t.Context(), "tasks", 7)); err != nil {
		t.Fatal(err)
	}
	if s := only(t, o); !s.Paused || s.PausedAt.IsZero() || s.Reason != "a test" || s.Concurrency != 7 {
		t.Errorf("the settings are %+v, want a pause and 7 workers", s)
	}
	if err := errors.Join(e.Resume(t.Context(), "tasks"), e.ResetConcurrency(t.Context(), "tasks")); err != nil {
		t.Fatal(err)
	}
	if s := only(t, o); s != (operate.EndpointSettings{Endpoint: "tasks"}) {
		t.Errorf("the settings are %+v, want none", s)
	}
	if err := e.SetConcurrency(t.Context(), "tasks", 0); err == nil {
		t.Error("no workers at all were accepted")
	}
}

// A partitioned endpoint is paused and resumed as a whole, each of its partitions with an audit entry.
func TestPartitionedEndpointIsPausedAsAWhole(t *testing.T) {
	t.Parallel()
	o, _, schema := installed(t)
	owner, err := operate.New(pgtest.Pool(t), operate.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Queues().Install(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, pgtest.Pool(t), `INSERT INTO "`+schema+`".settings VALUES ('partitions/orders', '2')`)
	for _, name := range []string{"orders.p0", "orders.p1", "orders.px"} {
		if err := owner.Queues().Install(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	check := func(paused string, entries int) {
		t.Helper()
		all, err := o.Endpoints().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range all {
			if e.Paused {
				got += e.Endpoint + " "
			}
		}
		written, err := o.Audit(t.Context(), operate.AuditFilter{Verb: "endpoint"})
		if err != nil || got != paused || len(written) != entries {
			t.Errorf("paused are %q with %d entries, %v; want %q with %d", got, len(written), err, paused, entries)
		}
	}
	e := o.Endpoints()
	if err := e.Pause(t.Context(), "orders", "closed"); err != nil {
		t.Fatal(err)
	}
	check("orders orders.p0 orders.p1 ", 3)
	if err := errors.Join(e.Resume(t.Context(), "orders"), e.Resume(t.Context(), "orders")); err != nil {
		t.Fatal(err)
	}
	check("", 6)
	if err := e.Pause(t.Context(), "orders.p1", ""); err != nil {
		t.Fatal(err)
	}
	check("orders.p1 ", 7)
}

func only(t *testing.T, o *operate.Operator) operate.EndpointSettings {
	t.Helper()
	all, err := o.Endpoints().List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("the endpoints are %+v, %v, want one", all, err)
	}
	return all[0]
}

func TestLimitsAreSet(t *testing.T) {
	t.Parallel()
	o, _, _ := installed(t)
	l := o.Limits()
	if _, err := l.Get(t.Context(), "tasks"); !errors.Is(err, operate.ErrNoLimit) {
		t.Errorf("the limit is %v, want ErrNoLimit", err)
	}
	if err := l.Set(t.Context(), "tasks", 3); err != nil {
		t.Fatal(err)
	}
	if info, err := l.Get(t.Context(), "tasks"); err != nil || info.Limit != 3 {
		t.Errorf("the limit is %+v, %v, want 3", info, err)
	}
	if all, err := l.List(t.Context()); err != nil || len(all) != 1 || all[0].Limit != 3 {
		t.Errorf("the limits are %+v, %v, want one of 3", all, err)
	}
	if err := l.Set(t.Context(), "tasks", 10_001); err == nil {
		t.Error("a limit that is too large was accepted")
	}
}

func TestUnknownEndpoints(t *testing.T) {
	t.Parallel()
	o, _, _ := installed(t)
	_, peek := o.Messages().Peek(t.Context(), "task", operate.PeekOptions{})
	_, cancel := o.Messages().Cancel(t.Context(), "task", saga.ID{1}, "")
	for verb, err := range map[string]error{
		"peek": peek, "cancel": cancel,
		"pause":  o.Endpoints().Pause(t.Context(), "task", ""),
		"resume": o.Endpoints().Resume(t.Context(), "task"),
		"set":    o.Endpoints().SetConcurrency(t.Context(), "task", 2),
		"reset":  o.Endpoints().ResetConcurrency(t.Context(), "task"),
		"limit":  o.Limits().Set(t.Context(), "task", 2),
	} {
		if !errors.Is(err, operate.ErrNotInstalled) {
			t.Errorf("%s of an endpoint that is not installed is %v, want ErrNotInstalled", verb, err)
		}
	}
}

func TestSagasOfAnEmptySchema(t *testing.T) {
	t.Parallel()
	o, _, _ := installed(t)
	if found, err := o.Instances().List(t.Context(), persistence.ListOptions{}); err != nil || len(found) != 0 {
		t.Errorf("the instances are %+v, %v, want none", found, err)
	}
	if _, ok, err := o.Instances().Show(t.Context(), "order", "7"); err != nil || ok {
		t.Errorf("an instance was found: %v, %v", ok, err)
	}
	if found, err := o.Endpoints().Counters(t.Context(), 0); err != nil || len(found) != 0 {
		t.Errorf("the counters are %+v, %v, want none", found, err)
	}
	if _, err := o.Endpoints().Counters(t.Context(), -1); err == nil {
		t.Error("a negative period was accepted")
	}
}
