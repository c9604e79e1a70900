package instances

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

// keeping is what the audit and the history may keep of states of one instance.
type keeping struct {
	of     *change
	mask   *secret.Mask
	known  bool // the mask has all that is secret
	states bool // the history keeps states
}

// keeps finds out what may be kept. Without a definition it follows the last version that the history has. Without
// the state of that version nothing is known of what is secret.
func (c *change) keeps(ctx context.Context) (keeping, error) {
	k := keeping{of: c, states: true, known: c.unmasked}
	i := &c.row.Instance
	versions, _, err := c.history.Timeline(ctx, c.tx, i.ID, c.row.Row.Page, 1)
	if err != nil {
		return k, fmt.Errorf("read the last version: %w", err)
	}
	for _, v := range versions {
		if v.Version > 0 && v.Page == c.row.Row.Page {
			k.states, k.mask = v.State != nil, secret.Like(v.State)
			// a function that redacts may have left a text of the state, which does not show which fields are secret
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

// sameKind reports whether two JSON values are both objects, or both arrays or texts.
func sameKind(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && a[0] == b[0] }

// Public reads a living instance with its state as the audit may keep it: without its secrets, and without what
// Options.Redact takes away. A definition of nil is not known; then the secrets are those that the history has masked.
// The state is nil if nobody knows what of it is secret, see Options.Unmasked, and if it is not JSON. It takes no lock.
// Errors: ErrNotFound.
func (o *Operator) Public(ctx context.Context, name, key string, def *saga.Definition) (persistence.Listed, error) {
	l, err := o.show(ctx, name, key, def)
	if err != nil {
		err = fmt.Errorf("read saga %.80s/%.80q: %w", name, key, pgerr.Explain(err))
	}
	return l, err
}

func (o *Operator) show(ctx context.Context, name, key string, def *saga.Definition) (l persistence.Listed, err error) {
	err = pgx.BeginTxFunc(ctx, o.pool, pg.ReadCommitted, func(tx pgx.Tx) (err error) {
		c, ok := &change{Operator: o, tx: tx, def: def}, false
		if err := c.begin(ctx); err != nil {
			return err
		}
		if l, ok, err = o.sagas.Show(ctx, tx, name, key); err != nil || !ok {
			return cmp.Or(err, ErrNotFound)
		}
		found, err := o.sagas.Load(ctx, tx, []persistence.Ref{{ID: l.Instance.ID}}) // for its page of the history
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

// public is what the audit may keep of a state, as JSON. A text that is not JSON is left out, and so is a state of
// which nobody knows what is secret.
func (k keeping) public(state []byte) json.RawMessage {
	if !k.known {
		return nil
	}
	text, err := k.mask.Apply(state)
	if err == nil && k.of.redact != nil {
		text = k.of.redact(k.of.row.Instance.Saga, append([]byte{}, text...))
	}
	if err != nil || !json.Valid(text) {
		return nil
	}
	return text
}

// kept is what the history keeps of a state, nil if it keeps no states.
func (k keeping) kept(state []byte) []byte {
	if !k.states {
		return nil
	}
	return k.public(state)
}
