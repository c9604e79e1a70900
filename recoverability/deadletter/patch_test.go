package deadletter_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
)

// replacing is a patcher that replaces text in place of a library.
type replacing struct{ *operate.Operator }

func (replacing) Patch(body, _ []byte) ([]byte, error) {
	if bytes.Contains(body, []byte("stubborn")) {
		return nil, errors.New("no")
	}
	return bytes.ReplaceAll(body, []byte("old"), []byte("new")), nil
}

// A job with a patch sends changed bodies, keeps what they were, and leaves what it cannot change.
func TestJobPatchesMany(t *testing.T) {
	t.Parallel()
	letters := numbered(120, "orders")
	for n := range letters {
		letters[n].Body = []byte(`"old"`)
	}
	letters[3].Body, letters[5].Body = []byte(`old`), []byte(`"stubborn"`)
	s := newShop(t, letters...)
	f := deadletter.Filter{Endpoint: "orders", Limit: 6}
	shown, err := s.store.Preview(t.Context(), s.pool, replacing{s.op}, f, []byte(`{}`))
	if err != nil || len(shown) != 6 || string(shown[0].Body) != `"new"` || string(shown[0].Letter.Body) != `"old"` ||
		shown[3].Err == nil || shown[5].Err == nil {
		t.Errorf("%+v, %v", shown, err)
	}
	number := s.job(deadletter.Job{Action: deadletter.ActionRetry, Patch: []byte(`{"a":1}`), Reason: "renamed"})
	if _, err := s.store.RunJob(t.Context(), s.pool, s.op, number, nil); err == nil ||
		!strings.Contains(err.Error(), "Patcher") {
		t.Errorf("without a patcher: %v", err)
	}
	j, err := s.store.RunJob(t.Context(), s.pool, replacing{s.op}, number, nil)
	if err != nil || j.Ended != 118 || j.Kept != 2 || j.State != deadletter.JobDone || string(j.Patch) != `{"a":1}` ||
		!strings.Contains(j.Error, "cannot be changed") {
		t.Errorf("%+v, %v", j, err)
	}
	if n := s.count(`SELECT count(*) FROM :schema.queue_1 WHERE body = '"new"'`); n != 118 {
		t.Errorf("%d new bodies wait, want 118", n)
	}
	if n := s.count(`SELECT count(*) FROM :schema.dead_letter_edit WHERE body = '"old"' AND reason = 'renamed'
		AND message_id = sent_as`); n != 118 {
		t.Errorf("%d old bodies are kept, want 118", n)
	}
	if left := s.letters(); len(left) != 2 || left[0].MessageID != (saga.ID{0, 3, 1}) {
		t.Errorf("%+v", left)
	}
	if _, err := s.store.UndoJob(t.Context(), s.pool, number); err == nil ||
		!strings.Contains(err.Error(), "has changed") {
		t.Errorf("undone: %v", err)
	}
}
