package watermill_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/jackc/pgx/v5"
)

// manyInHand is a subscriber that delivers all its messages before the first is answered, as InOrder allows. After a
// nack it waits until goOn is closed.
type manyInHand struct {
	all  []*message.Message
	goOn chan struct{}
}

func (s *manyInHand) await(ctx context.Context) {
	select {
	case <-s.goOn:
	case <-ctx.Done():
	}
}

func (s *manyInHand) Close() error { return nil }

func (s *manyInHand) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for left := s.all; len(left) > 0 && ctx.Err() == nil; {
			left = left[s.round(ctx, out, left):]
		}
		<-ctx.Done()
	}()
	return out, nil
}

// round delivers the remaining messages, and returns how many were acked before the first that was not.
func (s *manyInHand) round(ctx context.Context, out chan<- *message.Message, left []*message.Message) (acked int) {
	together, end := context.WithCancel(watermill.InOrder(context.WithoutCancel(ctx)))
	defer end()
	given := make([]*message.Message, 0, len(left))
	for _, m := range left {
		m = m.Copy()
		m.SetContext(together)
		var refused <-chan struct{}
		if len(given) > 0 {
			refused = given[0].Nacked()
		}
		select {
		case out <- m:
			given = append(given, m)
			continue
		case <-refused:
			s.await(ctx)
			return 0
		case <-ctx.Done():
			return 0
		}
	}
	for n, m := range given {
		select {
		case <-m.Acked():
		case <-m.Nacked():
			s.await(ctx)
			return n
		case <-ctx.Done():
			return n
		}
	}
	return len(given)
}

// While the database refuses the first of many messages in hand, the messages behind it are not ingested.
func TestNothingOvertakesANackedMessage(t *testing.T) {
	w := newWorld(t)
	s := &manyInHand{goOn: make(chan struct{})}
	for n := range 60 {
		s.all = append(s.all, paid(n))
	}
	if err := w.bus.InstallQueue(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	name := pgx.Identifier{w.schema}.Sanitize()
	// Only the first transaction fails.
	for _, statement := range []string{
		`CREATE SEQUENCE ` + name + `.tries`,
		`CREATE FUNCTION ` + name + `.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('` + name +
			`.tries') = 1 THEN RAISE 'not now'; END IF; RETURN NULL; END $$`,
		`CREATE TRIGGER refuse AFTER INSERT ON ` + name + `.` + w.table("orders") +
			` FOR EACH STATEMENT EXECUTE FUNCTION ` + name + `.refuse()`,
	} {
		if _, err := w.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	w.intake(s, watermill.IntakeOptions{Endpoint: "orders", BatchMax: 10})
	<-time.After(time.Second) // an intake that does not wait would ingest the others
	if n := w.left("orders"); n != 0 {
		t.Errorf("%d messages were brought in before the one that they follow", n)
	}
	s.goOn <- struct{}{}
	w.until("all have come", func() bool { return w.left("orders") >= 60 })
	rows, err := w.pool.Query(t.Context(), `SELECT convert_from(body, 'UTF8') FROM `+name+`.`+w.table("orders")+
		` ORDER BY due, id`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.Equal(got, bodies(60)) {
		t.Errorf("in the queue are %v: %v", got, err)
	}
}

func (w *world) table(endpoint string) (table string) {
	w.Helper()
	name := pgx.Identifier{w.schema}.Sanitize()
	if err := w.pool.QueryRow(w.Context(), `SELECT 'queue_' || id FROM `+name+`.queue WHERE endpoint = $1`,
		endpoint).Scan(&table); err != nil {
		w.Fatal(err)
	}
	return table
}
