package saga

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Codec turns messages into bytes and back. Implementations are safe for concurrent use, and Decode must not
// keep the bytes.
type Codec interface {
	ContentType() string
	Encode(Message) ([]byte, error)
	Decode([]byte, any) error // into a pointer to the registered type
}

// JSON is encoding/json without its silent losses: text that is not UTF-8 is an error in both directions
// (encoding/json writes U+FFFD in its place), and so is nesting deeper than 1,000, which a database or a page
// would trip over later. NaN and infinities are errors. An empty body is read only into a type without fields. A
// lone surrogate (`\ud800`) is read as U+FFFD, since there is no Go text for it; the stored body keeps it.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) ContentType() string { return "application/json" }

func (jsonCodec) Encode(m Message) ([]byte, error) {
	if r, ok := m.(Raw); ok {
		return bytes.Clone(r.Body), nil
	}
	return encodeJSON(m)
}

func (jsonCodec) Decode(b []byte, into any) error { return decodeJSON(b, into) }

const maxDepth = 1000

var errDepth = fmt.Errorf("nested deeper than %d", maxDepth)

func encodeJSON(v any) (b []byte, err error) {
	defer caught(&err)
	if b, err = json.Marshal(v); err != nil {
		return nil, err
	}
	if err := checkDepth(b); err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("text is not UTF-8: %w", ErrInvalidText)
	}
	if mayBeReplaced(b) && !textIsUTF8(reflect.ValueOf(v), maxDepth) {
		return nil, fmt.Errorf("text is not UTF-8: %w", ErrInvalidText)
	}
	return b, nil
}

func decodeJSON(b []byte, into any) (err error) {
	defer caught(&err)
	if len(b) == 0 && hasNoFields(into) {
		return nil
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("the bytes are not UTF-8: %w", ErrInvalidText)
	}
	if err := checkDepth(b); err != nil {
		return err
	}
	return withoutValue(json.Unmarshal(b, into))
}

// withoutValue takes out of an error what encoding/json and time quote from the text: it may be anything, and
// errors are logged.
func withoutValue(err error) error {
	if err == nil {
		return nil
	}
	var wrongType *json.UnmarshalTypeError
	var wrongTime *time.ParseError
	switch {
	case errors.As(err, &wrongType):
		wrongType.Value, _, _ = strings.Cut(wrongType.Value, " ") // "number 42" becomes "number"
	case errors.As(err, &wrongTime):
		return fmt.Errorf("a time of %d bytes is not of the form %s", len(wrongTime.Value), wrongTime.Layout)
	}
	return err
}

// hasNoFields reports whether there is nothing to read, so that an empty body is as good as {}.
func hasNoFields(into any) bool {
	t := reflect.TypeOf(into)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t.Elem().NumField() == 0
}

// checkDepth counts brackets outside strings. A text shorter than two brackets per level cannot be too deep,
// so ordinary messages pay one comparison.
func checkDepth(b []byte) error {
	if len(b) <= 2*maxDepth {
		return nil
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i+1)
		case '{', '[':
			if depth++; depth > maxDepth {
				return errDepth
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// stringEnd returns the index of the quote that closes the string whose text begins at i.
func stringEnd(b []byte, i int) int {
	for i < len(b) && b[i] != '"' {
		if b[i] == '\\' {
			i++
		}
		i++
	}
	return i
}

var replacements = [][]byte{[]byte(`\ufffd`), []byte("\uFFFD")}

// mayBeReplaced finds what encoding/json writes in place of bytes that are not UTF-8. Text that honestly
// holds U+FFFD looks the same, so a hit means "look closer", and the reflective walk is paid only then.
func mayBeReplaced(b []byte) bool {
	return bytes.Contains(b, replacements[0]) || bytes.Contains(b, replacements[1])
}
