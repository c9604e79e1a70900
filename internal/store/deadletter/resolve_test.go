package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// resender writes letters into a table of the test, in the transaction.
type resender struct {
	insert string
	before func(tx pgx.Tx) error
}

func (r resender) Resend(ctx context.Context, tx pgx.Tx, letters ...recoverability.Letter) error {
	if r.before != nil {
		if err := r.before(tx); err != nil {
			return err
		}
	}
	for _, l := range letters {
		if l.Endpoint == "nowhere" {
			return fmt.Errorf("endpoint %s: %w", l.Endpoint, deadletter.ErrUndeliverable)
		}
		if _, err := tx.Exec(ctx, r.insert, l.Endpoint, l.MessageID.String(), l.Header, l.Body); err != nil {
			return err
		}
	}
	return nil
}

// stage is a schema with one dead letter and a queue that retries go to.
type stage struct {
	pool   *pgxpool.Pool
	store  *deadletter.Store
	resend resender
	letter recoverability.Letter
	count  string
}

func newStage(t *testing.T) stage {
	t.Helper()
	pool, schema := pgtest.Database(t)
	store := deadletter.New(schema)
	table := schema.Render("CREATE TABLE :schema.resent (endpoint text, id text, header bytea, body bytea); GRANT " +
		"ALL ON :schema.resent TO PUBLIC")
	if _, err := pgtest.Pool(t).Exec(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	write(t, pool, store, recoverability.Letter{
		Endpoint: "orders", MessageID: saga.ID{1}, Kind: "order.place", Attempts: 24,
		Header: []byte("{\"a\":\"\x1b\"}"), Body: []byte("\x00\xff"), Error: "no stock",
	})
	letter, err := store.Show(t.Context(), pool, list(t, pool, store, recoverability.LetterFilter{})[0].Number)
	if err != nil {
		t.Fatal(err)
	}
	return stage{
		pool: pool, store: store, letter: letter,
		resend: resender{insert: schema.Render("-- name: resend\nINSERT INTO :schema.resent VALUES ($1, $2, $3, $4)")},
		count: schema.Render("SELECT count(*) FROM :schema.resent WHERE id = $1 AND endpoint = 'orders' AND " +
			"header = $2 AND body = $3"),
	}
}

// want checks where the message is now: a dead letter, or back in the queue with its bytes.
func (s stage) want(t *testing.T, waiting, resent int) {
	t.Helper()
	if n := len(list(t, s.pool, s.store, recoverability.LetterFilter{})); n != waiting {
		t.Errorf("%d dead letters wait, want %d", n, waiting)
	}
	var n int
	if err := s.pool.QueryRow(t.Context(), s.count, s.letter.MessageID.String(), s.letter.Header,
		s.letter.Body).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != resent {
		t.Errorf("the message was sent again %d times, want %d", n, resent)
	}
}

func TestRetrySendsAgainAndEndsTheLetter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := s.store.Retry(t.Context(), s.pool, s.resend, s.letter.Number); err != nil {
		t.Fatal(err)
	}
	s.want(t, 0, 1)
	if err := s.store.Retry(t.Context(), s.pool, s.resend, s.letter.Number); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("a second retry: %v, want ErrNotFound", err)
	}
	if err := s.store.Discard(t.Context(), s.pool, s.letter.Number, "no"); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("discard after a retry: %v, want ErrNotFound", err)
	}
	s.want(t, 0, 1)
}

func TestRetryThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	full := errors.New("the queue is gone")
	s.resend.before = func(pgx.Tx) error { return full }
	if err := s.store.Retry(t.Context(), s.pool, s.resend, s.letter.Number); !errors.Is(err, full) {
		t.Errorf("retry: %v, want the resender's error", err)
	}
	s.want(t, 1, 0)
}

// Two operators press the button at once: the message must not be sent twice.
func TestTwoRetriesSendOnce(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"read committed", "repeatable read"} {
		for _, first := range []string{"succeeds", "fails"} {
			t.Run(fmt.Sprintf("%s, the first %s", isolation, first), func(t *testing.T) {
				t.Parallel()
				retryTwice(t, newStage(t), isolation, first == "fails")
			})
		}
	}
}

func retryTwice(t *testing.T, s stage, isolation string, fail bool) {
	inside, proceed := make(chan struct{}), make(chan struct{})
	slow := s.resend
	slow.before = func(pgx.Tx) error {
		close(inside)
		<-proceed
		if fail {
			return errors.New("the first fails")
		}
		return nil
	}
	result := make(chan error, 2)
	go func() { result <- s.store.Retry(t.Context(), s.pool, slow, s.letter.Number) }()
	<-inside
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "SELECT set_config('default_transaction_isolation', $1, false)",
		isolation); err != nil {
		t.Fatal(err)
	}
	go func() { result <- s.store.Retry(t.Context(), conn, s.resend, s.letter.Number) }()
	pgtest.AwaitBlocked(t, s.pool, conn.Conn())
	close(proceed)
	errs := []error{<-result, <-result}
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !fail && !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("the second retry: %v, want ErrNotFound", err)
		}
	}
	if won != 1 {
		t.Errorf("%d retries succeeded, want 1: %v", won, errs)
	}
	s.want(t, 0, 1)
}

func TestManyRetriesAndDiscardsEndTheLetterOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const callers = 16
	result := make(chan error, callers)
	for n := range callers {
		go func() {
			if n%2 == 0 {
				result <- s.store.Retry(t.Context(), s.pool, s.resend, s.letter.Number)
			} else {
				result <- s.store.Discard(t.Context(), s.pool, s.letter.Number, "no longer wanted")
			}
		}()
	}
	won := 0
	for range callers {
		if err := <-result; err == nil {
			won++
		} else if !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("caller: %v, want ErrNotFound", err)
		}
	}
	if won != 1 {
		t.Errorf("%d callers succeeded, want 1", won)
	}
	s.want(t, 0, 1-len(discarded(t, s.pool, s.store, recoverability.LetterFilter{})))
}

func TestDiscardKeepsTheReason(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := s.store.Discard(t.Context(), s.pool, s.letter.Number, "no longer\x00 wanted"); err != nil {
		t.Fatal(err)
	}
	s.want(t, 0, 0)
	got := discarded(t, s.pool, s.store, recoverability.LetterFilter{})
	if len(got) != 1 {
		t.Fatalf("%d messages are discarded, want 1", len(got))
	}
	want := recoverability.Discarded{
		Number: got[0].Number, At: got[0].At,
		Endpoint: "orders", MessageID: saga.ID{1}, Kind: "order.place", Reason: "no longer\uFFFD wanted",
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("discarded (-want +got):\n%s", diff)
	}
}
