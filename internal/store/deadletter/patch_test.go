package deadletter_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// replacing is a patcher that replaces text instead of using a library.
type replacing struct{ queues }

func (replacing) Patch(body, _ []byte) ([]byte, error) {
	switch string(body) {
	case `"stubborn"`:
		return nil, errors.New("no")
	case `"large"`:
		return []byte(`"` + strings.Repeat("x", deadletter.MaxBody) + `"`), nil
	case `"broken"`:
		return []byte(`{`), nil
	}
	return bytes.ReplaceAll(body, []byte("old"), []byte("new")), nil
}

// A job with a patch sends changed bodies, keeps the old letters, and leaves letters that it cannot change.
func TestJobPatchesMany(t *testing.T) {
	t.Parallel()
	letters := numbered(120, "orders")
	for n := range letters {
		letters[n].Body = []byte(`"old"`)
	}
	letters[3].Body, letters[5].Body = []byte(`old`), []byte(`"stubborn"`)
	letters[7].Body, letters[9].Body = []byte(`"large"`), []byte(`"broken"`)
	s := newShop(t, letters...)
	f := recoverability.LetterFilter{Endpoint: "orders", Limit: 10}
	shown, err := s.store.Preview(t.Context(), s.pool, replacing{s.op}, f, []byte(`{}`))
	if err != nil || len(shown) != 10 || string(shown[0].Body) != `"new"` || string(shown[0].Letter.Body) != `"old"` {
		t.Fatalf("%d previews, %+v, %v", len(shown), shown, err)
	}
	for n, want := range map[int]string{3: "not JSON", 5: "changed: no", 7: "the limit is 1048576", 9: "not JSON"} {
		if err := shown[n].Err; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the preview of letter %d: %v, want %q", n+1, err, want)
		}
	}
	number := s.job(recoverability.Job{Action: recoverability.JobRetry, Patch: []byte(`{"a":1}`), Reason: "renamed"})
	if _, err := s.store.RunJob(t.Context(), s.pool, s.op, number, nil); err == nil ||
		!strings.Contains(err.Error(), "Options.Patch") {
		t.Errorf("without a patcher: %v", err)
	}
	j, err := s.store.RunJob(t.Context(), s.pool, replacing{s.op}, number, nil)
	if err != nil || j.Ended != 116 || j.Kept != 4 || j.State != recoverability.JobDone ||
		string(j.Patch) != `{"a":1}` || !strings.Contains(j.Error, "cannot be changed") {
		t.Errorf("%+v, %v", j, err)
	}
	if n := s.count(`SELECT count(*) FROM :schema.queue_1 WHERE body = '"new"'`); n != 116 {
		t.Errorf("%d new bodies wait, want 116", n)
	}
	if n := s.count(`SELECT count(*) FROM :schema.dead_letter_edit WHERE body = '"old"' AND reason = 'renamed'
		AND message_id = sent_as`); n != 116 {
		t.Errorf("%d old bodies are kept, want 116", n)
	}
	if left := s.letters(); len(left) != 4 || left[0].MessageID != (saga.ID{0, 3, 1}) {
		t.Errorf("%+v", left)
	}
	if _, err := s.store.UndoJob(t.Context(), s.pool, number); err == nil ||
		!strings.Contains(err.Error(), "has changed") {
		t.Errorf("undone: %v", err)
	}
}

// losing is a pool in which the first letter disappears before Preview reads it by its number.
type losing struct {
	*pgxpool.Pool
	lose func()
}

func (l losing) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if len(args) == 2 && args[1] == int64(1) { // the other argument is pg.Planned
		l.lose()
	}
	return l.Pool.Query(ctx, sql, args...)
}

// A letter that ends while a preview is made is left out.
func TestPreviewLeavesOutWhatIsGone(t *testing.T) {
	t.Parallel()
	s := newShop(t, numbered(3, "orders")...)
	pool := losing{s.pool, func() { s.exec("DELETE FROM :schema.dead_letter WHERE id = 1") }}
	shown, err := s.store.Preview(t.Context(), pool, replacing{s.op}, recoverability.LetterFilter{}, []byte(`{}`))
	if err != nil || len(shown) != 2 || shown[0].Letter.Number != 2 {
		t.Errorf("%+v, %v", shown, err)
	}
}
