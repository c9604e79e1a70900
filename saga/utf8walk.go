package saga

import (
	"encoding/json"
	"reflect"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/fields"
)

var rawJSON = reflect.TypeFor[json.RawMessage]()

// textIsUTF8 reports whether every string that encoding/json may have written for v is UTF-8. It cannot find out
// which fields a MarshalJSON writes, so it checks all of them. It runs only if mayBeReplaced.
func textIsUTF8(v reflect.Value, depth int) bool {
	if depth == 0 || !v.IsValid() || v.Type() == rawJSON {
		return true
	}
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || textIsUTF8(v.Elem(), depth-1)
	case reflect.Slice, reflect.Array:
		return elementsAreUTF8(v, depth)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !textIsUTF8(it.Key(), depth-1) || !textIsUTF8(it.Value(), depth-1) {
				return false
			}
		}
	case reflect.Struct:
		return fieldsAreUTF8(v, depth)
	}
	return true
}

func elementsAreUTF8(v reflect.Value, depth int) bool {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return true // base64, or numbers
	}
	for i := range v.Len() {
		if !textIsUTF8(v.Index(i), depth-1) {
			return false
		}
	}
	return true
}

func fieldsAreUTF8(v reflect.Value, depth int) bool {
	own := fields.Encodes(v.Type())
	for i := range v.NumField() {
		f := v.Type().Field(i)
		written := own || f.Anonymous || f.IsExported() && f.Tag.Get("json") != "-"
		if written && !textIsUTF8(v.Field(i), depth-1) {
			return false
		}
	}
	return true
}
