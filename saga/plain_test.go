package saga

import (
	"reflect"
	"testing"
	"time"
)

type address struct{ Street, City string }

// shout has the method only on the pointer; it is called if the field is addressable, as in a state.
type shout string

func (s *shout) UnmarshalText(b []byte) error { *s = shout(b) + "!"; return nil }

func TestPlainStates(t *testing.T) {
	for _, c := range []struct {
		state any
		plain bool
	}{
		{struct {
			A int64  `json:"a"`
			B string `json:"b"`
			C bool
			D float64
			E address
			F uint8
		}{}, true},
		{struct{}{}, true},
		{struct{ P *int }{}, false},
		{struct{ S []string }{}, false},
		{struct{ M map[string]int }{}, false},
		{struct{ A [2]int }{}, false},
		{struct{ T time.Time }{}, false},
		{struct{ T shout }{}, false},
		{struct{ address }{}, false},
		{struct{ A, B int }{}, true},
		{struct{ AB, Ab int }{}, false},
		{struct {
			A int `json:"x"`
			B int `json:"X"`
		}{}, false},
		{struct {
			A int `json:",omitempty"`
		}{}, false},
		{struct {
			A int `json:"-"`
		}{}, false},
		{map[string]int{}, false},
		{0, true},
	} {
		if got := isPlain(reflect.TypeOf(c.state)); got != c.plain {
			t.Errorf("%T: plain %v, want %v", c.state, got, c.plain)
		}
	}
}
