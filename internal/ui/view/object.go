package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/edda-go/edda/saga"
)

// Object is a JSON object: names and values in turn, in the order of the output.
type Object []any

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for n, part := range o {
		if n%2 == 1 {
			b.WriteByte(':')
		} else if n > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(part); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Text returns the object on several lines, indented. Unprintable characters are escaped as in JSON.
func (o Object) Text() (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(o); err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return escapeJSON(b.String()), nil
}

// Line returns the object on one line, for a file of many objects. Unprintable characters are escaped as in JSON.
func (o Object) Line() (string, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return escapeJSON(string(line)) + "\n", nil
}

// escapeJSON escapes unprintable characters in a JSON text as in JSON. Outside its strings a JSON text has only
// printable characters and white space, so the value stays the same.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			b.WriteRune(r)
		case r == '\t' || r == '\r': // between tokens: inside a string they are escaped already
			b.WriteByte(' ')
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// objects returns the objects of all, never nil.
func objects[T any](all []T, of func(T) Object) []Object {
	list := []Object{}
	for _, one := range all {
		list = append(list, of(one))
	}
	return list
}

// timeOrNull returns a time for JSON, or null for the zero time.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// idOrNull returns an id for JSON, or null for the zero id.
func idOrNull(id saga.ID) *saga.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}

// numberOrNull returns a number for JSON, or null for 0.
func numberOrNull[N int | int64 | float64](n N) *N {
	if n == 0 {
		return nil
	}
	return &n
}

// texts returns a list for JSON, never null.
func texts(list []string) []string { return append([]string{}, list...) }
