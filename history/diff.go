package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Diff describes the difference between two states of an instance in one line, for people: "Total: 1 → 2, +Paid:
// true, Notes: +3 elements". It returns "" if nothing differs, and all of after if before is nil. Strings keep the
// JSON escapes of control characters; escape other characters before you show them.
func Diff(before, after []byte) string {
	if before == nil {
		return compact(after)
	}
	if bytes.Equal(before, after) {
		return ""
	}
	a, errA := parsed(before)
	b, errB := parsed(after)
	if errA != nil || errB != nil {
		return fmt.Sprintf("%d → %d bytes", len(before), len(after))
	}
	d := differ{}
	d.values("", a, b)
	return strings.Join(d.parts, ", ")
}

// parsed decodes a JSON value, and keeps its numbers as they are written.
func parsed(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func compact(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}

// mostParts and mostOfPart bound a difference of any two states.
const (
	mostParts  = 50
	mostOfPart = 60 // characters
)

type differ struct{ parts []string }

func (d *differ) add(format string, args ...any) {
	if len(d.parts) < mostParts {
		d.parts = append(d.parts, fmt.Sprintf(format, args...))
	} else if len(d.parts) == mostParts {
		d.parts = append(d.parts, "…")
	}
}

func (d *differ) values(path string, a, b any) {
	switch {
	case len(d.parts) > mostParts || reflect.DeepEqual(a, b):
	case isOf[map[string]any](a, b):
		d.objects(path, a.(map[string]any), b.(map[string]any))
	case isOf[[]any](a, b):
		d.lists(path, a.([]any), b.([]any))
	case path == "":
		d.add("%s → %s", valueText(a), valueText(b))
	default:
		d.add("%s: %s → %s", path, valueText(a), valueText(b))
	}
}

func isOf[T any](a, b any) bool {
	_, okA := a.(T)
	_, okB := b.(T)
	return okA && okB
}

func (d *differ) objects(path string, a, b map[string]any) {
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		to := name
		if path != "" {
			to = path + "." + name
		}
		before, was := a[name]
		after, is := b[name]
		switch {
		case !was:
			d.add("+%s: %s", to, valueText(after))
		case !is:
			d.add("-%s", to)
		default:
			d.values(to, before, after)
		}
	}
}

func (d *differ) lists(path string, a, b []any) {
	same := 0
	for same < min(len(a), len(b)) && reflect.DeepEqual(a[same], b[same]) {
		same++
	}
	name := path
	if name != "" {
		name += ": "
	}
	switch {
	case len(a) == len(b):
		for n := same; n < len(a); n++ {
			d.values(path+"["+strconv.Itoa(n)+"]", a[n], b[n])
		}
	case same == len(a):
		d.add("%s+%s", name, elements(len(b)-same))
	case same == len(b):
		d.add("%s-%s", name, elements(len(a)-same))
	default:
		d.add("%s%d → %s", name, len(a), elements(len(b)))
	}
}

func elements(n int) string {
	if n == 1 {
		return "1 element"
	}
	return strconv.Itoa(n) + " elements"
}

// valueText returns a value as JSON, or the beginning of it.
func valueText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "?"
	}
	text := []rune(strings.TrimSuffix(b.String(), "\n"))
	if len(text) > mostOfPart {
		return string(text[:mostOfPart-1]) + "…"
	}
	return string(text)
}
