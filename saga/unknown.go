package saga

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/fields"
)

// decodeState decodes a state as decodeJSON does. foreign is set if b may have a field that S does not have.
func (d *Definition) decodeState(b []byte) (state any, foreign bool, err error) {
	defer caught(&err)
	state = d.newState()
	if len(b) > 0 && utf8.Valid(b) && checkDepth(b) == nil && d.decodeKnown(b, state) == nil {
		return state, false, nil
	}
	state = d.newState()
	return state, true, decodeJSON(b, state)
}

// strict is a decoder that refuses unknown fields, which json.Unmarshal cannot do. Its buffer is reused for the next
// state, so that it takes no longer than json.Unmarshal.
type strict struct {
	from    bytes.Reader
	decoder *json.Decoder
}

func newStrict() *strict {
	s := &strict{}
	s.decoder = json.NewDecoder(&s.from)
	s.decoder.DisallowUnknownFields()
	return s
}

var (
	stricts   sync.Pool
	errBehind = errors.New("text follows the value")
)

// decodeKnown decodes b into a new state. An error means that b has a field that S does not have, or is not one
// value; do not use the state then.
func (d *Definition) decodeKnown(b []byte, state any) error {
	var s *strict
	if !d.keepsText {
		s, _ = stricts.Get().(*strict)
	}
	if s == nil {
		s = newStrict()
	}
	s.from.Reset(b)
	begun := s.decoder.InputOffset()
	if err := s.decoder.Decode(state); err != nil {
		return err
	}
	if s.decoder.InputOffset()-begun != int64(len(b)) {
		return errBehind
	}
	if !d.keepsText {
		stricts.Put(s)
	}
	return nil
}

// keepsText reports whether a type has its own decoding method, which might keep the bytes. encoding/json forbids
// that; a type that keeps them nevertheless must not get the state of a different instance.
func keepsText(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || slices.Contains(harmless, t) {
		return false
	}
	seen[t] = true
	if fields.Decodes(t) {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return keepsText(t.Elem(), seen)
	case reflect.Map:
		return keepsText(t.Key(), seen) || keepsText(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if keepsText(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

var harmless = []reflect.Type{reflect.TypeFor[time.Time](), reflect.TypeFor[ID](), rawJSON}

const mostUnknown = 20 // most fields that unknown returns for one state

// unknown returns the names of the fields of a stored state that S does not have, at any depth.
func (d *Definition) unknown(b []byte) (names []string) {
	var tree any
	var err error
	defer caught(&err) // in a decoding method of the user: the names found so far are returned
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return nil
	}
	for len(names) < mostUnknown {
		if err = d.decodeKnown(b, d.newState()); err == nil {
			return names
		}
		quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
		name, notQuoted := strconv.Unquote(quoted)
		if !ok || notQuoted != nil {
			return names
		}
		names = append(names, name)
		without(tree, name)
		if b, err = json.Marshal(tree); err != nil {
			return names
		}
	}
	return names
}

// without removes all fields with this name from a tree.
func without(tree any, name string) {
	switch t := tree.(type) {
	case map[string]any:
		delete(t, name)
		for _, inner := range t {
			without(inner, name)
		}
	case []any:
		for _, inner := range t {
			without(inner, name)
		}
	}
}
