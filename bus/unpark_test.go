package bus_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// An endpoint was ordered until a deploy, whose last process gave up its lanes, or died, or still has one. Its parked
// messages are handled by the program that consumes the queue now.
func TestParkedMessagesAreHandledByAnEndpointWithoutOrder(t *testing.T) {
	t.Parallel()
	const gone, alive = `clock_timestamp()`, `clock_timestamp() + interval '1 second'`
	for name, c := range map[string]struct {
		part  func(s *turns) bus.Part
		lease string // of the lanes that are left; "" leaves none
	}{
		"leased, no lane":           {func(s *turns) bus.Part { return bus.Handle(s.handle) }, ""},
		"leased, a dead lane":       {func(s *turns) bus.Part { return bus.Handle(s.handle) }, gone},
		"leased, an old program":    {func(s *turns) bus.Part { return bus.Handle(s.handle) }, alive},
		"in transactions":           {func(s *turns) bus.Part { return bus.HandleTx(s.handleTx) }, gone},
		"in transactions, deployed": {func(s *turns) bus.Part { return bus.HandleTx(s.handleTx) }, alive},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			s := newTurns()
			e := w.endpoint("turns", bus.EndpointOptions{Poll: 20 * time.Millisecond}, c.part(s))
			w.makeQueue("turns")
			if err := e.Install(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.exec(`SELECT edda.send('turn.take', convert_to(json_build_object('Key', 'key-0', 'N', n)::text, 'UTF8'))
				FROM generate_series(1, 1500) n`)
			table, queue := w.queue("turns"), w.count("SELECT id FROM edda.queue")
			w.exec(`INSERT INTO edda.parked SELECT $1, 'key-0', due, id, sent, first_failed, attempt, conflict, kind,
				header, body FROM `+table, queue)
			w.exec(`DELETE FROM ` + table)
			if c.lease != "" {
				w.exec(`INSERT INTO edda.lane (queue, key, owner, until) VALUES ($1, 'key-0', gen_random_uuid(), `+
					c.lease+`)`, queue)
			}
			w.run(e)
			w.until("all are handled", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.seen["key-0"]) == 1500
			})
			w.want(0, `SELECT count(*) FROM edda.parked`)
			if c.lease == alive {
				w.want(1, `SELECT count(*) FROM edda.lane WHERE until <= clock_timestamp()`) // nothing was taken before
			}
		})
	}
}

func (s *turns) handleTx(_ *bus.Context, _ pgx.Tx, m turn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[m.Key] = append(s.seen[m.Key], m.N)
	return nil
}
