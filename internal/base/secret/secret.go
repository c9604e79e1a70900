package secret

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Masked replaces a secret.
const Masked = "[secret]"

const (
	tagName = "edda"
	tag     = "secret"
)

// Mask masks the secrets of one type. A nil Mask masks nothing. Safe for concurrent use.
type Mask struct {
	all    bool             // the whole value is secret
	fields map[string]*Mask // by their folded names in JSON
	each   *Mask            // of the elements of a list or a map
	either []*Mask          // the masks of several fields with one folded name: each of them is applied
	secret bool             // it contains a secret
}

// whole masks a value that is all secret.
var whole = &Mask{all: true, secret: true}

// masks are the results of Of by type: a *Mask or an error.
var masks sync.Map

// Of returns the mask of a type, or nil if nothing in it is secret. It returns an error if a tag edda:"..." is not
// edda:"secret".
func Of(t reflect.Type) (*Mask, error) {
	if t == nil {
		return nil, nil
	}
	if known, ok := masks.Load(t); ok {
		if err, failed := known.(error); failed {
			return nil, err
		}
		return known.(*Mask), nil
	}
	b := builder{masks: map[reflect.Type]*Mask{}}
	m := b.of(t)
	if b.err != nil {
		masks.Store(t, b.err)
		return nil, b.err
	}
	for _, of := range b.masks {
		of.secret = of.finds(map[*Mask]bool{})
	}
	if !m.secret {
		m = nil
	}
	masks.Store(t, m)
	return m, nil
}

// builder builds masks. The mask of a type that contains itself contains itself, too.
type builder struct {
	masks  map[reflect.Type]*Mask
	within []reflect.Type // the embedded structs that are being added
	err    error
}

func (b *builder) of(t reflect.Type) *Mask {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if m, ok := b.masks[t]; ok {
		return m
	}
	m := &Mask{}
	b.masks[t] = m
	switch t.Kind() {
	case reflect.Struct:
		m.fields = map[string]*Mask{}
		b.addFields(m, t)
	case reflect.Slice, reflect.Array, reflect.Map:
		m.each = b.of(t.Elem())
	}
	if encodesItself(t) && m.finds(map[*Mask]bool{}) {
		*m = *whole // the place of its fields in the JSON is unknown
	}
	return m
}

func (b *builder) addFields(m *Mask, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		text, tagged := f.Tag.Lookup(tagName)
		if tagged && text != tag && b.err == nil {
			b.err = fmt.Errorf("field %s of %s has the tag %s:%q, want %s:%q", f.Name, t, tagName, text, tagName, tag)
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" && f.Tag.Get("json") == "-" {
			continue
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			b.embed(m, inner, tagged)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		field := whole
		if !tagged {
			field = b.of(f.Type)
		}
		m.add(fold(name), field)
	}
}

// add adds a field. If there is a mask for the name, both are applied: encoding/json ignores the case of names, and
// of several fields with one name, in embedded structs, it reads one or no field.
func (m *Mask) add(name string, field *Mask) {
	switch has := m.fields[name]; {
	case has == nil || field.all:
		m.fields[name] = field
	case has != field && !has.all:
		m.fields[name] = &Mask{either: []*Mask{has, field}}
	}
}

// fold returns a name in the form that encoding/json compares: of letters that differ only in case, or that Unicode
// treats as equal, such as s and ſ, the smallest.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

// embed adds the fields of an embedded struct, which JSON has beside those of the outer struct.
func (b *builder) embed(m *Mask, inner reflect.Type, secret bool) {
	if slices.Contains(b.within, inner) {
		return
	}
	b.within = append(b.within, inner)
	defer func() { b.within = b.within[:len(b.within)-1] }()
	if !secret {
		b.addFields(m, inner)
		return
	}
	within := &Mask{fields: map[string]*Mask{}}
	b.addFields(within, inner)
	for name := range within.fields {
		m.add(name, whole)
	}
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

// finds reports whether anything is secret in m. seen are the masks that were visited.
func (m *Mask) finds(seen map[*Mask]bool) bool {
	if m == nil || seen[m] {
		return false
	}
	seen[m] = true
	if m.all || m.each.finds(seen) {
		return true
	}
	for _, f := range m.fields {
		if f.finds(seen) {
			return true
		}
	}
	return slices.ContainsFunc(m.either, func(f *Mask) bool { return f.finds(seen) })
}

// Apply returns JSON with its secrets masked. Numbers keep their text; the order of fields may change.
func (m *Mask) Apply(text []byte) ([]byte, error) {
	if m == nil {
		return text, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("mask secrets: %w", err)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(m.masked(value)); err != nil {
		return nil, fmt.Errorf("mask secrets: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func (m *Mask) masked(value any) any {
	switch {
	case m == nil || value == nil || !m.secret && m.either == nil:
		return value
	case m.all:
		return Masked
	case m.either != nil:
		for _, f := range m.either {
			value = f.masked(value)
		}
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		if m.each == nil && m.fields == nil {
			return Masked
		}
		for name, inner := range v {
			if m.each != nil {
				v[name] = m.each.masked(inner)
			} else if f, ok := m.fields[fold(name)]; ok {
				v[name] = f.masked(inner)
			}
		}
		return v
	case []any:
		if m.each == nil {
			return Masked
		}
		for n, inner := range v {
			v[n] = m.each.masked(inner)
		}
		return v
	}
	return Masked // the value has a shape other than the type's: it may be the secret itself
}
