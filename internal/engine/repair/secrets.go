package repair

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/secret"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// keeping decides which parts of the states of one instance the audit and the history may keep.
type keeping struct {
	of     *change
	mask   *secret.Mask
	known  bool // the mask covers all secrets
	states bool // the history keeps states
}

// keeps returns the keeping of the instance. Without a definition it follows the last version in the history. Without
// the state of that version the secrets are unknown.
func (c *change) keeps(ctx context.Context) (keeping, error) {
	k := keeping{of: c, states: true, known: c.Unmasked}
	i := &c.row.Instance
	versions, _, err := c.history.Timeline(ctx, c.tx, i.ID, c.row.Row.Page, 1)
	if err != nil {
		return k, fmt.Errorf("read the last version: %w", err)
	}
	for _, v := range versions {
		if v.Version > 0 && v.Page == c.row.Row.Page {
			k.states, k.mask = v.State != nil, secret.Like(v.State)
			// a Redact function may have left a text of the state, which does not show the secret fields
			k.known = k.known || sameKind(v.State, i.State)
		}
	}
	if c.def != nil {
		if k.mask, err = secret.Of(c.def.StateType()); err != nil {
			return k, fmt.Errorf("mask the secrets of saga %s: %w", i.Saga, err)
		}
		k.known = true
	}
	return k, nil
}

// sameKind reports whether two JSON values begin alike: both are objects, or both arrays, or both texts.
func sameKind(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && a[0] == b[0] }

// Public implements operate.Instances.Public.
func (s *Store) Public(ctx context.Context, name, key string, def *saga.Definition) (persistence.Listed, error) {
	l, err := s.show(ctx, name, key, def)
	if err != nil {
		err = fmt.Errorf("read saga %.80s/%.80q: %w", name, key, pgerr.Explain(err))
	}
	return l, err
}

func (s *Store) show(ctx context.Context, name, key string, def *saga.Definition) (l persistence.Listed, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pg.ReadCommitted, func(tx pgx.Tx) (err error) {
		c, ok := &change{Store: s, tx: tx, def: def}, false
		if err := c.begin(ctx); err != nil {
			return err
		}
		if l, ok, err = s.sagas.Show(ctx, tx, name, key); err != nil || !ok {
			return cmp.Or(err, ErrNotFound)
		}
		found, err := s.sagas.Load(ctx, tx, []persistence.Ref{{ID: l.Instance.ID}}) // for its page of the history
		if err != nil || found[0].Status != persistence.Loaded {
			return cmp.Or(err, ErrNotFound)
		}
		c.row = found[0]
		keeps, err := c.keeps(ctx)
		l.Instance.State = keeps.public(l.Instance.State)
		return err
	})
	return l, err
}

// public returns the part of a state that the audit may keep, as JSON. It returns nil for a text that is not JSON,
// and for a state whose secrets are unknown.
func (k keeping) public(state []byte) json.RawMessage {
	if !k.known {
		return nil
	}
	text, err := k.mask.Apply(state)
	if err == nil && k.of.Redact != nil {
		text = k.of.Redact(k.of.row.Instance.Saga, append([]byte{}, text...))
	}
	if err != nil || !json.Valid(text) {
		return nil
	}
	return text
}

// kept returns the part of a state that the history keeps, nil if it keeps no states.
func (k keeping) kept(state []byte) []byte {
	if !k.states {
		return nil
	}
	return k.public(state)
}
