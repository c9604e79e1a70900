package fields

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

type guard struct{}

type inner struct{ Text string }

type sent struct {
	_       [4]byte
	none    guard
	Any     any
	Left    func() `json:"-"`
	When    *time.Time
	ByKey   map[string][]inner
	Literal struct{ A int }
	inner
}

type lost struct {
	total int
	Deep  struct{ mu int }
	Shape interface{ Area() float64 }
	Pipe  chan int
	Lines []struct{ price int }
	A     int
	B     int `json:"A"`
	*inner
}

// A message may have fields that a state may not: fields left out on purpose, and fields of type any.
func TestFieldsThatDoNotArrive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   any
		want string
	}{
		{sent{none: guard{}}, ""},
		{time.Time{}, ""},
		{"", ""},
		{lost{total: 1}, `field total is unexported, so it is not sent: export it
field Deep.mu is unexported, so it is not sent: export it
field Shape is an interface, so its type is lost when it is sent
field Pipe is a chan, which cannot be sent
field Lines.price is unexported, so it is not sent: export it
field B and A have the same name in JSON, "A", so one of them is lost
field inner is an embedded pointer to an unexported type, so it cannot be read back`},
	} {
		got := ""
		if err := errors.Join(OfMessage(reflect.TypeOf(c.of))...); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%T:\n%s\nwant\n%s", c.of, got, c.want)
		}
	}
	if len(OfState(reflect.TypeFor[sent]())) != 4 {
		t.Errorf("of a state: %v", OfState(reflect.TypeFor[sent]()))
	}
}
