package fields

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// OfState returns the faults of the type of a state: the fields that would not come back from the database as they
// went in. It returns nil if there are no faults.
func OfState(t reflect.Type) []error {
	c := check{seen: map[reflect.Type]bool{}, carried: "stored", state: true}
	c.walk("", t)
	return c.faults
}

// OfMessage returns the faults of the type of a message in JSON: the fields that do not arrive. Three things may be in
// a message and not in a state: a field with the tag json:"-", which is left out on purpose, a field of type any, and
// an unexported field without data.
func OfMessage(t reflect.Type) []error {
	c := check{seen: map[reflect.Type]bool{}, carried: "sent"}
	c.walk("", t)
	return c.faults
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Encodes reports whether t or *t has a MarshalJSON or MarshalText.
func Encodes(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

// Decodes reports whether *t has an UnmarshalJSON or UnmarshalText.
func Decodes(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

type check struct {
	seen    map[reflect.Type]bool
	carried string // "stored" or "sent"
	state   bool
	faults  []error
}

func (c *check) fault(path, why string) {
	c.faults = append(c.faults, fmt.Errorf("field %s %s", path, why))
}

func (c *check) walk(path string, t reflect.Type) {
	if c.seen[t] {
		return
	}
	c.seen[t] = t.Kind() == reflect.Struct || t.Name() != "" // only named types can recurse
	if Encodes(t) {
		if !Decodes(t) {
			c.fault(path, fmt.Sprintf("of type %v writes itself and cannot read itself", t))
		}
		return
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		c.again(t)
		c.fault(path, fmt.Sprintf("is a %v, which cannot be %s", t.Kind(), c.carried))
	case reflect.Interface:
		c.again(t)
		if c.state || t.NumMethod() > 0 {
			c.fault(path, "is an interface, so its type is lost when it is "+c.carried)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		c.walk(path, t.Elem())
	case reflect.Map:
		c.mapKey(path, t.Key())
		c.walk(path, t.Elem())
	case reflect.Struct:
		c.fields(path, t)
	}
}

// again allows a second field of a bad type to be reported, too.
func (c *check) again(t reflect.Type) { delete(c.seen, t) }

func (c *check) mapKey(path string, k reflect.Type) {
	switch k.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return
	}
	p := reflect.PointerTo(k)
	if !k.Implements(textMarshaler) || !p.Implements(textUnmarshaler) {
		c.fault(path, fmt.Sprintf("is a map with keys of type %v, which cannot be %s", k, c.carried))
	}
}

func (c *check) fields(path string, t reflect.Type) {
	names := map[string]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		at := strings.TrimPrefix(path+"."+f.Name, ".")
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-":
			if c.state {
				c.fault(at, `is left out by its tag json:"-"`)
			}
			continue
		case f.Anonymous && name == "":
			c.embedded(at, f)
			continue
		case !f.IsExported():
			if c.state || f.Type.Size() > 0 && f.Name != "_" {
				c.fault(at, c.unexported())
			}
			continue
		case name == "":
			name = f.Name
		}
		if other, twice := names[name]; twice {
			c.fault(at, fmt.Sprintf("and %s have the same name in JSON, %q, so one of them is lost", other, name))
		}
		names[name] = f.Name
		c.walk(at, f.Type)
	}
}

func (c *check) unexported() string {
	return "is unexported, so it is not " + c.carried + ": export it"
}

// embedded checks an embedded struct. Its fields are stored with the others, unless it is embedded as a pointer to an
// unexported type, which a decoder cannot set.
func (c *check) embedded(path string, f reflect.StructField) {
	t := f.Type
	if t.Kind() == reflect.Pointer && !f.IsExported() {
		c.fault(path, "is an embedded pointer to an unexported type, so it cannot be read back")
		return
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct && !f.IsExported() {
		c.fault(path, c.unexported())
		return
	}
	c.walk(path, t)
}
