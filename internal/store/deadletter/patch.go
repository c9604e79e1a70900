package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// Patcher is a Resender for jobs with a Patch: Patch returns a body with a JSON merge patch (RFC 7396) applied, see
// operate.Options.Patch.
type Patcher interface {
	Resender
	Patch(body, patch []byte) ([]byte, error)
}

var (
	errPatch   = errors.New("its body cannot be changed")
	errPatcher = errors.New("the job changes bodies, and this program cannot: operate.Options.Patch is not set")
)

// Preview returns the first letters that a filter selects with the patch applied, f.Limit of them; 0 is DefaultLimit.
func (s *Store) Preview(
	ctx context.Context, q Queryer, p Patcher, f recoverability.LetterFilter, patch []byte,
) ([]recoverability.PatchPreview, error) {
	letters, err := s.List(ctx, q, f)
	if err != nil {
		return nil, err
	}
	previews := make([]recoverability.PatchPreview, 0, len(letters))
	for _, l := range letters {
		whole, err := s.Show(ctx, q, l.Number)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v := recoverability.PatchPreview{Letter: whole}
		v.Body, v.Err = patched(p, whole, patch)
		previews = append(previews, v)
	}
	return previews, nil
}

// patched returns the body of a letter with a patch applied.
func patched(p Patcher, l recoverability.Letter, patch []byte) ([]byte, error) {
	if !json.Valid(l.Body) {
		return nil, fmt.Errorf("dead letter %d: %w: it is not JSON", l.Number, errPatch)
	}
	body, err := p.Patch(l.Body, patch)
	if err == nil {
		err = edit{Body: body, JSON: true}.check()
	}
	if err != nil {
		return nil, fmt.Errorf("dead letter %d: %w: %w", l.Number, errPatch, err)
	}
	return body, nil
}

// change applies the patch of the job to letters, and keeps the unchanged letters for ListEdited. With an error it
// returns a function that reports which letters have to stay.
func (st *step) change(
	ctx context.Context, tx pgx.Tx, letters []recoverability.Letter,
) (stays func(candidate) bool, err error) {
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
		letter(*l).queueEdited(st.store.sql, pipeline, l.MessageID, st.job.Reason)
		l.Body = body
	}
	if err != nil {
		return func(c candidate) bool { return faulty[c.number] }, err
	}
	return nil, tx.SendBatch(ctx, pipeline).Close()
}
