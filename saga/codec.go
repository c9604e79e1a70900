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

// Codec encodes and decodes messages. Implementations must be safe for concurrent use, and Decode must not keep the
// bytes.
type Codec interface {
	ContentType() string
	Encode(Message) ([]byte, error)
	Decode([]byte, any) error // the second argument is a pointer to the handler's message type
}

// JSON is the default Codec: encoding/json, with an error where encoding/json would lose data silently. Text that is
// not UTF-8 is an error in both directions (encoding/json would write U+FFFD), and so is nesting deeper than 1,000,
// which databases refuse. NaN and infinities are errors. An empty body is accepted only for a type without fields. A
// lone surrogate (`\ud800`) is decoded as U+FFFD, because Go text cannot represent it; the stored body keeps it.
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

// withoutValue removes from an error the text that encoding/json and time quote: it may be confidential, and errors are
// logged.
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

// hasNoFields reports whether into points to a struct without fields: then an empty body means {}.
func hasNoFields(into any) bool {
	t := reflect.TypeOf(into)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t.Elem().NumField() == 0
}

// checkDepth returns errDepth if b nests too deep. It counts brackets outside strings. A text shorter than two brackets
// per level cannot be too deep, so an ordinary message costs one comparison.
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

// mayBeReplaced reports whether b has U+FFFD, which encoding/json writes for bytes that are not UTF-8. Valid text may
// have it too, so the caller then walks the value by reflection.
func mayBeReplaced(b []byte) bool {
	return bytes.Contains(b, replacements[0]) || bytes.Contains(b, replacements[1])
}
