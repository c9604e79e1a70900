package secret

import (
	"bytes"
	"encoding/json"
	"maps"
)

// Like returns the mask that a masked text shows, or nil if nothing in it is masked. It is for texts of the same
// type, if the type is unknown. A field that the text does not have is not treated as a secret.
func Like(masked []byte) *Mask {
	if !bytes.Contains(masked, []byte(Masked)) {
		return nil
	}
	var value any
	if json.Unmarshal(masked, &value) != nil {
		return nil
	}
	return like(value)
}

func like(value any) *Mask {
	switch v := value.(type) {
	case string:
		if v == Masked {
			return whole
		}
	case []any:
		var each *Mask
		for _, inner := range v {
			each = both(each, like(inner))
		}
		if each != nil {
			return &Mask{each: each, secret: true}
		}
	case map[string]any:
		fields, all := map[string]*Mask{}, true
		for name, inner := range v {
			if m := like(inner); m != nil {
				fields[fold(name)] = both(fields[fold(name)], m)
			}
			all = all && inner == Masked
		}
		if all && len(v) > 0 {
			return &Mask{each: whole, secret: true}
		}
		if len(fields) > 0 {
			return &Mask{fields: fields, secret: true}
		}
	}
	return nil
}

// both returns a mask of everything that a or b masks.
func both(a, b *Mask) *Mask {
	switch {
	case a == nil || b != nil && b.all:
		return b
	case b == nil || a.all:
		return a
	case a.each != nil || b.each != nil:
		return &Mask{each: both(a.each, b.each), secret: true}
	}
	fields := maps.Clone(a.fields)
	for name, m := range b.fields {
		fields[name] = both(fields[name], m)
	}
	return &Mask{fields: fields, secret: true}
}
