package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/edda-go/edda/saga"
)

// eachPair calls do for every name and value of a flat JSON object of strings, in their order. It reads a header
// without escapes with one allocation; any other header goes through encoding/json.
func eachPair(header []byte, do func(name, value string)) error {
	if !utf8.Valid(header) {
		return fmt.Errorf("%d bytes: %w", len(header), saga.ErrInvalidText)
	}
	text := string(header)
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' || strings.IndexByte(text, '\\') >= 0 {
		return eachPairSlow(header, do)
	}
	rest := text[1 : len(text)-1]
	for more := rest != ""; more; {
		name, after, ok := cutString(rest)
		if !ok || after == "" || after[0] != ':' {
			return eachPairSlow(header, do)
		}
		value, after, ok := cutString(after[1:])
		if !ok || after != "" && after[0] != ',' {
			return eachPairSlow(header, do)
		}
		do(name, value)
		rest, more = strings.CutPrefix(after, ",")
	}
	return nil
}

// cutString cuts a JSON string without escapes from the front of s.
func cutString(s string) (value, after string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	return strings.Cut(s[1:], `"`)
}

// eachPairSlow starts over: do only gets whole values, and a repeated call does no harm.
func eachPairSlow(header []byte, do func(name, value string)) error {
	d := json.NewDecoder(bytes.NewReader(header))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return ErrNoObject
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoObject, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("%w: %w", ErrNoObject, err)
		}
		text := string(value) // a different program wrote a number or an object; it stays readable
		if value[0] == '"' {
			if err := json.Unmarshal(value, &text); err != nil {
				return fmt.Errorf("%w: %w", ErrNoObject, err)
			}
		}
		do(name.(string), text)
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return fmt.Errorf("%w: %w", ErrNoObject, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: text follows the object", ErrNoObject)
	}
	return nil
}
