package operate_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type note struct{ Key string }

func (note) Kind() string { return "note" }

// desk is a schema with the endpoint notes.
type desk struct {
	*testing.T
	owner  *pgxpool.Pool
	schema string
	op     operate.Endpoints
	read   chan string // keys of handled messages
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	_, schema := pgtest.Database(t)
	d := &desk{T: t, owner: pgtest.Pool(t), schema: schema.Name(), read: make(chan string, 100)}
	o, err := operate.New(d.owner, operate.Options{Schema: d.schema})
	d.must(err)
	d.op = o.Endpoints()
	return d
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) bus() *bus.Bus {
	d.Helper()
	b, err := bus.New(d.owner, bus.Options{Schema: d.schema, Logger: slog.New(slog.DiscardHandler)})
	d.must(err)
	return b
}

// program returns a program whose endpoint notes has n partitions.
func (d *desk) program(n int) *bus.Partitioned {
	d.Helper()
	p, err := bus.NewPartitioned(d.bus(), "notes", bus.PartitionOptions{Partitions: n},
		bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m note) error {
			d.read <- m.Key
			return nil
		}, bus.KeyedBy(func(m note) string { return m.Key })))
	d.must(err)
	return p
}

// run runs p until stop is called.
func (d *desk) run(p *bus.Partitioned) (stop func()) {
	ctx, cancel := context.WithCancel(d.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return func() {
		cancel()
		d.must(<-ended)
	}
}

func (d *desk) entries() []operate.AuditEntry {
	d.Helper()
	log, err := operate.New(d.owner, operate.Options{Schema: d.schema})
	d.must(err)
	all, err := log.Audit(d.Context(), operate.AuditFilter{Verb: "endpoint.partitions"})
	d.must(err)
	return all
}

// set sets n partitions in place of before.
func (d *desk) set(n, before int) {
	d.Helper()
	if got, moved, err := d.op.SetPartitions(d.Context(), "notes", n); err != nil || got != before || moved != 0 {
		d.Errorf("%d partitions: before there were %d, %d messages were moved, %v; want %d before", n, got, moved, err,
			before)
	}
}

// SetPartitions moves the messages of partitions back to the endpoint. Only programs with the new number start.
func TestSetPartitions(t *testing.T) {
	d := newDesk(t)
	d.must(d.program(4).Install(t.Context()))
	for n := range 6 {
		_, err := d.owner.Exec(t.Context(), `SELECT "`+d.schema+`".send(kind => 'note', endpoint => $1, body => $2)`,
			"notes.p"+strconv.Itoa(n%4), `{"Key":"`+strconv.Itoa(n)+`"}`)
		d.must(err)
	}
	ctx := operate.WithReason(operate.WithActor(t.Context(), operate.Actor{Name: "ann"}), "more servers")
	if before, moved, err := d.op.SetPartitions(ctx, "notes", 2); err != nil || before != 4 || moved != 6 {
		t.Errorf("before there were %d, %d messages were moved, %v, want 4 and 6", before, moved, err)
	}
	all := d.entries()
	if len(all) != 1 || all[0].Actor != "ann" || all[0].Reason != "more servers" || all[0].Target != "notes" ||
		string(all[0].Before) != `{"partitions":4}` || string(all[0].After) != `{"partitions":2}` {
		t.Errorf("%+v", all)
	}
	if err := d.program(4).Check(t.Context()); err == nil {
		t.Error("a program with the old number may start")
	}
	stop := d.run(d.program(2))
	for range 6 {
		<-d.read
	}
	if _, _, err := d.op.SetPartitions(ctx, "notes", 3); !errors.Is(err, operate.ErrRunning) {
		t.Errorf("while it runs: %v", err)
	}
	stop()
	d.set(0, 2)
	d.set(3, 0)
	d.must(d.program(3).Check(t.Context()))
	d.set(3, 3)
	if all := d.entries(); len(all) != 3 {
		t.Errorf("%d entries, want one for each change", len(all))
	}
}

func TestSetPartitionsIsRefused(t *testing.T) {
	d := newDesk(t)
	for _, n := range []int{-1, 257} {
		if _, _, err := d.op.SetPartitions(t.Context(), "notes", n); err == nil {
			t.Errorf("%d partitions are taken", n)
		}
	}
	if _, _, err := d.op.SetPartitions(t.Context(), "nobody", 2); !errors.Is(err, operate.ErrNotInstalled) {
		t.Errorf("of an endpoint that is not there: %v", err)
	}
	if len(d.entries()) != 0 {
		t.Error("a refusal has an entry")
	}
}
