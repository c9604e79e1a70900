package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Patcher is a Resender for jobs with a Patch: Patch returns a body with a JSON merge patch (RFC 7396) applied. This
// package links no library for that; the command edda does.
type Patcher interface {
	Resender
	Patch(body, patch []byte) ([]byte, error)
}

var (
	errPatch   = errors.New("its body cannot be changed")
	errPatcher = errors.New("the job changes bodies, and this program cannot: it has no deadletter.Patcher")
)

// Preview is a letter as a job with a Patch would send it.
type Preview struct {
	Letter Letter
	Body   []byte // after the patch
	Err    error  // why the job would keep the letter
}

// Preview returns the first letters that a filter selects with the patch applied, f.Limit of them; 0 is DefaultLimit.
func (s *Store) Preview(ctx context.Context, q Queryer, p Patcher, f Filter, patch []byte) ([]Preview, error) {
	letters, err := s.List(ctx, q, f)
	if err != nil {
		return nil, err
	}
	previews := make([]Preview, 0, len(letters))
	for _, l := range letters {
		whole, err := s.Show(ctx, q, l.Number)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v := Preview{Letter: whole}
		v.Body, v.Err = patched(p, whole, patch)
		previews = append(previews, v)
	}
	return previews, nil
}

// patched returns the body of a letter with a patch applied.
func patched(p Patcher, l Letter, patch []byte) ([]byte, error) {
	if !json.Valid(l.Body) {
		return nil, fmt.Errorf("dead letter %d: %w: it is not JSON", l.Number, errPatch)
	}
	body, err := p.Patch(l.Body, patch)
	if err == nil {
		err = Edit{Body: body, JSON: true}.check()
	}
	if err != nil {
		return nil, fmt.Errorf("dead letter %d: %w: %w", l.Number, errPatch, err)
	}
	return body, nil
}

// change applies the patch of the job to letters, and keeps the unchanged letters for ListEdited. With an error it
// returns a function that reports which letters have to stay.
func (st *step) change(ctx context.Context, tx pgx.Tx, letters []Letter) (stays func(candidate) bool, err error) {
	if st.job.Patch == nil {
		return nil, nil
	}
	p, ok := st.resend.(Patcher)
	if !ok {
		return nil, errPatcher
	}
	faulty := map[int64]bool{}
	pipeline := &pgx.Batch{}
	for n := range letters {
		l := &letters[n]
		body, fault := patched(p, *l, st.job.Patch)
		if fault != nil {
			faulty[l.Number], err = true, fault
			continue
		}
		l.queueEdited(st.store.sql, pipeline, l.MessageID, st.job.Reason)
		l.Body = body
	}
	if err != nil {
		return func(c candidate) bool { return faulty[c.number] }, err
	}
	return nil, tx.SendBatch(ctx, pipeline).Close()
}
