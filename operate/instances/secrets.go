package instances

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/edda-go/edda/internal/secret"
)

// keeping is what the audit and the history may keep of states of one instance.
type keeping struct {
	of     *change
	mask   *secret.Mask
	states bool // the history keeps states
}

// keeps finds out what may be kept. Without a definition it follows the last version that the history has.
func (c *change) keeps(ctx context.Context) (keeping, error) {
	k := keeping{of: c, states: true}
	i := &c.row.Instance
	versions, _, err := c.history.Timeline(ctx, c.tx, i.ID, c.row.Row.Page, 1)
	if err != nil {
		return k, fmt.Errorf("read the last version: %w", err)
	}
	for _, v := range versions {
		if v.Version > 0 && v.Page == c.row.Row.Page {
			k.states, k.mask = v.State != nil, secret.Like(v.State)
		}
	}
	if c.def != nil {
		if k.mask, err = secret.Of(c.def.StateType()); err != nil {
			return k, fmt.Errorf("mask the secrets of saga %s: %w", i.Saga, err)
		}
	}
	return k, nil
}

// public is what the audit may keep of a state, as JSON; a text that is not JSON is left out.
func (k keeping) public(state []byte) json.RawMessage {
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
