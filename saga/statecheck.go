package saga

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// checkState finds the fields of a state that would not come back from the database as they went in.
func checkState(t reflect.Type) []error {
	c := stateCheck{seen: map[reflect.Type]bool{}}
	if t.Kind() != reflect.Struct {
		return []error{errors.New("a state is a struct")}
	}
	c.walk("", t)
	return c.faults
}

type stateCheck struct {
	seen   map[reflect.Type]bool
	faults []error
}

func (c *stateCheck) fault(path, why string) {
	c.faults = append(c.faults, fmt.Errorf("field %s %s", path, why))
}

func (c *stateCheck) walk(path string, t reflect.Type) {
	if c.seen[t] {
		return
	}
	c.seen[t] = t.Kind() == reflect.Struct || t.Name() != "" // only named types can recurse
	if ownEncoding(t) {
		if !ownDecoding(t) {
			c.fault(path, fmt.Sprintf("of type %v writes itself and cannot read itself", t))
		}
		return
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		c.again(t)
		c.fault(path, fmt.Sprintf("is a %v, which cannot be stored", t.Kind()))
	case reflect.Interface:
		c.again(t)
		c.fault(path, "is an interface: another type comes back than was stored")
	case reflect.Pointer, reflect.Slice, reflect.Array:
		c.walk(path, t.Elem())
	case reflect.Map:
		c.mapKey(path, t.Key())
		c.walk(path, t.Elem())
	case reflect.Struct:
		c.fields(path, t)
	}
}

// again lets a second field of a bad type be reported too.
func (c *stateCheck) again(t reflect.Type) { delete(c.seen, t) }

func (c *stateCheck) mapKey(path string, k reflect.Type) {
	switch k.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return
	}
	p := reflect.PointerTo(k)
	if !k.Implements(textMarshaler) || !p.Implements(textUnmarshaler) {
		c.fault(path, fmt.Sprintf("is a map with keys of type %v, which cannot be stored", k))
	}
}

func (c *stateCheck) fields(path string, t reflect.Type) {
	names := map[string]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		at := strings.TrimPrefix(path+"."+f.Name, ".")
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-":
			c.fault(at, `is left out by its tag json:"-"`)
			continue
		case f.Anonymous && name == "":
			c.embedded(at, f)
			continue
		case !f.IsExported():
			c.fault(at, "is unexported, so it is not stored")
			continue
		case name == "":
			name = f.Name
		}
		if other, twice := names[name]; twice {
			c.fault(at, fmt.Sprintf("and %s have one name in JSON, %q, so one of them is lost", other, name))
		}
		names[name] = f.Name
		c.walk(at, f.Type)
	}
}

// embedded: the fields of an embedded struct are stored with the others, unless it hangs on a pointer to an
// unexported type, which a decoder cannot set.
func (c *stateCheck) embedded(path string, f reflect.StructField) {
	t := f.Type
	if t.Kind() == reflect.Pointer && !f.IsExported() {
		c.fault(path, "is an embedded pointer to an unexported type, so it cannot be read back")
		return
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct && !f.IsExported() {
		c.fault(path, "is unexported, so it is not stored")
		return
	}
	c.walk(path, t)
}
