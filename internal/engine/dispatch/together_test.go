package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// allTogether is a Sender of many messages at a time.
type allTogether struct {
	*tableSender
	calls atomic.Int64
	fewer bool // reports one message fewer than it was given
}

func (s *allTogether) SendAllTx(ctx context.Context, tx pgx.Tx, all []saga.Posting) ([]saga.Sent, error) {
	s.calls.Add(1)
	var sent []saga.Sent
	for _, p := range all {
		one, err := s.SendTx(ctx, tx, p.Message, p.Options...)
		if err != nil {
			return nil, err
		}
		sent = append(sent, one)
	}
	if s.fewer {
		return sent[1:], nil
	}
	return sent, nil
}

func (w *loopsWorld) together() (*Engine, *allTogether) {
	w.t.Helper()
	sender := &allTogether{tableSender: w.sender}
	s, err := New(w.pool, w.schema, sender, Options{MaxDispatchAttempts: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	return s, sender
}

func TestSenderOfManyIsGivenMany(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", mostTogether, 0)
	s, sender := w.together()
	w.drain(s)
	if n := sender.calls.Load(); n != 1 {
		t.Errorf("%d calls for %d runs, want 1", n, mostTogether)
	}
	w.onceEach()
	if n := w.count("SELECT count(*) FROM :schema.sent_message s JOIN :schema.run_attempt a ON a.run = s.run AND " +
		"a.message_id = s.id"); n != mostTogether {
		t.Errorf("%d attempts name the message of their run, want %d", n, mostTogether)
	}
}

// A message that cannot be sent, or that breaks the transaction, makes its run dead; the others of its transaction
// are sent again, each once.
func TestWhatCannotBeSentTogetherGoesAlone(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(5)
	w.exec("UPDATE :schema.manifest SET kind = 'poison' WHERE name = 'm3'")
	w.exec("ALTER TABLE :schema.sent_message ADD CHECK (kind <> 'poison')")
	s, _ := w.together()
	w.cycle(s)
	w.drain(s)
	if n := w.count("SELECT count(*) FROM :schema.sent_message"); n != 4 || w.states("m3") != "schedule dead 0" {
		t.Errorf("%d messages, want 4; m3: %s", n, w.states("m3"))
	}
	w.onceEach()
}

// A message that a Sender does not report does not count as sent.
func TestSenderThatTellsOfFewerIsNotBelieved(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 5, 0)
	s, sender := w.together()
	sender.fewer = true
	w.drain(s)
	if n := w.count("SELECT count(*) FROM :schema.sent_message"); n != 5 {
		t.Errorf("%d messages, want 5, each sent alone", n)
	}
	w.onceEach()
}

// A server that picks while a different one has the first runs in hand finds the runs behind them: so a second server
// is of use.
func TestServersPickBesideEachOther(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 2*batchRuns, 0)
	s := w.scheduler()
	first, err := s.dispatcher.pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := w.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	p := &dispatch{dispatcher: s.dispatcher, wanted: first}
	if claims, err := p.claim(t.Context(), tx, first); err != nil || len(claims) != batchRuns {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	taken := map[saga.ID]bool{}
	for _, c := range first {
		taken[c.id] = true
	}
	second, err := s.dispatcher.pick(t.Context())
	if err != nil || len(second) != batchRuns {
		t.Errorf("the other server finds %d runs, %v; want %d", len(second), err, batchRuns)
	}
	for _, c := range second {
		if taken[c.id] {
			t.Fatalf("run %s is in the first server's hands", c.id)
		}
	}
}

// Servers dispatch at the same time: each is in the middle of its transaction while the other is in its own.
func TestServersDispatchAtTheSameTime(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 2, 0)
	servers := []*Engine{w.scheduler(), w.scheduler()}
	picked, err := servers[0].dispatcher.pick(t.Context())
	if err != nil || len(picked) != 2 {
		t.Fatalf("picked %d, %v", len(picked), err)
	}
	var sending atomic.Int32
	both, over := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	w.sender.before = func(context.Context, saga.Message, saga.Firing) error {
		if sending.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-over:
		}
		return nil
	}
	w.atOnce(2, func(i int) error {
		defer end() // the other one continues, even if this one fails
		n, err := servers[i].dispatcher.dispatchAll(t.Context(), picked[i:i+1])
		if n != 1 {
			t.Errorf("a server dispatched %d while another one dispatches, want its own", n)
		}
		return err
	})
	w.onceEach()
}
