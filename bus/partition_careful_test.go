package bus_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// A message that a process died with is handled alone, in a partition at its turn: no message of its key overtakes it.
func TestSuspectsOfAPartitionKeepTheirTurn(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var mu sync.Mutex
	var taken []int
	part := bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m turn) error {
		mu.Lock()
		defer mu.Unlock()
		taken = append(taken, m.N)
		return nil
	}, bus.KeyedBy(func(m turn) string { return m.Key }))
	w.installPartitioned("turns", soon(1), part)
	queue := w.queue("turns.p0")
	w.exec(`INSERT INTO ` + queue + ` (due, id, kind, header, body)
		SELECT now() - interval '1 minute' + n * interval '1 ms', ('aaaaaaaa-0000-0000-0000-' || lpad(n::text, 12,
		'0'))::uuid, 'turn.take', '{}', convert_to('{"Key":"a","N":' || n || '}', 'UTF8')
		FROM generate_series(1, 40) n`)
	session := w.text(`INSERT INTO edda.session (id, host, pid, queues, expires, locked, ended, died)
		SELECT gen_random_uuid(), 'a host', 7, ARRAY(SELECT id FROM edda.queue), now(), false,
		clock_timestamp() - interval '1 second', true RETURNING id::text`)
	w.exec(`INSERT INTO edda.in_flight (id, queue, session, alone, due, ids)
		SELECT gen_random_uuid(), q.id, $1::text::uuid, false, array_agg(m.due), array_agg(m.id)
		FROM edda.queue q, `+queue+` m WHERE q.endpoint = 'turns.p0' AND m.id::text ~ '[37]$' GROUP BY q.id`, session)
	tx := w.begin()
	w.execTx(tx, w.sql(`SELECT FROM `+queue+` m FOR UPDATE`)) // changes the xmax of the rows
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.runPartitioned(w.partitioned(w.bus, "turns", soon(1), part))
	w.untilHandled("turn.take", 40)
	mu.Lock()
	defer mu.Unlock()
	if len(taken) != 40 || !slices.IsSorted(taken) {
		t.Errorf("the order was %v", taken)
	}
	w.want(0, `SELECT count(*) FROM edda.suspect`)
}

// A partition handles one batch at a time, whatever concurrency is set for it.
func TestConcurrencyLeavesPartitionsInOrder(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	part := bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m turn) error { return s.handle(ctx, m) },
		bus.KeyedBy(func(m turn) string { return m.Key }))
	o := soon(1)
	o.Endpoint.BatchMax = 5
	w.installPartitioned("turns", o, part)
	if err := w.operator().Endpoints().SetConcurrency(t.Context(), "turns.p0", 4); err != nil {
		t.Fatal(err)
	}
	w.runPartitioned(w.partitioned(w.bus, "turns", o, part))
	w.sendTurns(3, 100, nil)
	w.untilHandled("turn.take", 300)
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, seen := range s.seen {
		if len(seen) != 100 || !slices.IsSorted(seen) || len(s.twice) > 0 {
			t.Errorf("%s: %v; two at once: %v", key, seen, s.twice)
		}
	}
}
