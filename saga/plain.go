package saga

import (
	"reflect"
	"strings"

	"github.com/edda-go/edda/internal/base/fields"
)

// isPlain reports whether decoding the encoding of any value of type t gives an equal value: t is a struct of
// numbers, booleans and text with a distinct name for each field. Such a state need not be decoded before each step.
// Pointers, slices, maps and types that encode themselves are not plain: nil may be decoded as empty, two fields may
// share memory, a time loses its monotonic part.
func isPlain(t reflect.Type) bool {
	if fields.Encodes(t) || fields.Decodes(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Struct:
		return plainFields(t)
	}
	return false
}

func plainFields(t reflect.Type) bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		name = strings.ToLower(name) // encoding/json reads a field under any case of its name
		if f.Anonymous || !f.IsExported() || name == "-" || options != "" || names[name] || !isPlain(f.Type) {
			return false
		}
		names[name] = true
	}
	return true
}
