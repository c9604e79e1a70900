package saga_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
)

type byValue struct{ N int }

func (s byValue) place(_ *saga.Context, m place) error { s.N++; return nil }
func (s *byValue) right(*saga.Context, place) error    { s.N++; return nil }

type base struct{ N int }

func (b *base) place(*saga.Context, place) error { b.N++; return nil }

type embeds struct{ base }

type rules struct{}

func (rules) place(o *order, _ *saga.Context, m place) error { o.Seen++; return nil }

type badState struct {
	hidden  int
	Left    string `json:"-"`
	Any     any
	Also    any
	Ch      chan int
	Fn      func()
	Deep    []map[string]struct{ Inner error }
	Keys    map[[2]int]string
	Mu      sync.Mutex
	OneWay  oneWay
	X       int
	B       int `json:"X"`
	Complex complex128
}

type oneWay struct{ N int }

func (oneWay) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

type goodState struct {
	When    time.Time
	Due     *time.Time
	ID      saga.ID
	ByID    map[saga.ID]int
	ByNo    map[int64]string
	Tree    *node
	Wait    time.Duration
	Raw     []byte
	Dash    int `json:"-,"`
	Numbers [3]float64
	embedded
}

type embedded struct{ More string }

type node struct {
	Value    string
	Children []*node
}

type shifty struct{ Name string }

func (s shifty) Kind() string { return "shifty" + s.Name }

type shouting struct{}

func (shouting) Kind() string { return "Order.Place" }

type pointy struct{ N int }

func (p *pointy) Kind() string { return "pointy" }

type panicky struct{ P *place }

func (p panicky) Kind() string { return p.P.Kind() }

func start[S any](f func(*S, *saga.Context, place) error, o ...saga.HandleOption) saga.Part[S] {
	return saga.StartedBy(byOrder, f, o...)
}

func nop[S any, M saga.Message](*S, *saga.Context, M) error { return nil }

// TestEveryFaultOfADefinitionIsReported: each fault names the saga, and the kind if it has one.
func TestEveryFaultOfADefinitionIsReported(t *testing.T) {
	t.Parallel()
	ok := start((*order).place)
	tests := map[string]struct {
		def  *saga.Definition
		want []string
	}{
		"no start": {saga.Define[order]("order", saga.Options{}), []string{`saga "order": no StartedBy`}},
		"saga name": {saga.Define("Order 7", saga.Options{}, ok),
			[]string{`saga "Order 7": name of 7 bytes, byte 1`}},
		"nil part": {saga.Define("order", saga.Options{}, ok, nil), []string{"part 2 is nil"}},
		"nil handler": {saga.Define("order", saga.Options{}, start[order](nil)),
			[]string{"StartedBy of order.place: the handler is nil"}},
		"nil key": {saga.Define("order", saga.Options{},
			saga.StartedBy((func(place) string)(nil), (*order).place)),
			[]string{"order.place: the key function is nil"}},
		"nil key with info": {saga.Define("order", saga.Options{},
			saga.StartedBy((func(place, saga.Info) string)(nil), (*order).place)), []string{"the key function is nil"}},
		"two starts": {saga.Define("order", saga.Options{}, ok, ok),
			[]string{"kind order.place has two handlers"}},
		"a named type that is nil": {saga.Define("order", saga.Options{},
			saga.StartedBy(keyOfPlace(nil), (*order).place)), []string{"the key function is nil"}},
		"start and handle": {saga.Define("order", saga.Options{}, ok, saga.Handles(byOrder, (*order).place)),
			[]string{"kind order.place has two handlers"}},
		"two replies": {saga.Define("order", saga.Options{}, ok, saga.OnReply((*order).stocked),
			saga.OnReply((*order).stocked)), []string{"kind stock.left has two handlers"}},
		"two timeouts": {saga.Define("order", saga.Options{}, ok, saga.OnTimeout((*order).overdue),
			saga.OnTimeout((*order).overdue)), []string{"kind order.overdue has two handlers"}},
		"value receiver": {saga.Define("order", saga.Options{}, start((*byValue).place)),
			[]string{"order.place: its value receiver loses", "*byValue"}},
		"kind not constant": {saga.Define("order", saga.Options{}, ok, saga.OnReply(nop[order, shifty])),
			[]string{"Kind is not constant"}},
		"kind not a name": {saga.Define("order", saga.Options{}, ok, saga.OnReply(nop[order, shouting])),
			[]string{`kind "Order.Place": name of 11 bytes, byte 1`}},
		"pointer message": {saga.Define("order", saga.Options{}, ok, saga.OnReply(nop[order, *pointy])),
			[]string{"handle the value type saga_test.pointy"}},
		"interface message": {saga.Define("order", saga.Options{}, ok, saga.OnReply(nop[order, saga.Message])),
			[]string{"handle a concrete type"}},
		"raw message": {saga.Define("order", saga.Options{}, ok, saga.OnReply(nop[order, saga.Raw])),
			[]string{"can be sent, not handled"}},
		"kind panics": {saga.Define("order", saga.Options{}, ok, saga.OnReply(nop[order, panicky])),
			[]string{"panic:"}},
		"nil option": {saga.Define("order", saga.Options{}, start((*order).place, nil)),
			[]string{"an option is nil"}},
		"missing policy": {saga.Define("order", saga.Options{Missing: 9}, start((*order).place, saga.IfMissing(8))),
			[]string{"Missing is 9", "order.place: Missing is 8"}},
		"missing twice": {saga.Define("order", saga.Options{},
			start((*order).place, saga.IfMissing(saga.MissingRetry),
				saga.IfMissingDo(func(*saga.Context, place) error { return nil }))), []string{"not both"}},
		"missing other type": {saga.Define("order", saga.Options{},
			start((*order).place, saga.IfMissingDo(func(*saga.Context, charged) error { return nil }))),
			[]string{"IfMissingDo takes saga_test.charged"}},
		"missing do nil": {saga.Define("order", saga.Options{},
			start((*order).place, saga.IfMissingDo[place](nil))), []string{"IfMissingDo is nil"}},
		"store": {saga.Define("order", saga.Options{Store: 5}, ok), []string{"store 5"}},
		"lock after": {saga.Define("order", saga.Options{Store: saga.Optimistic, LockAfter: -2}, ok),
			[]string{"LockAfter -2", "-1 (never)"}},
		"lock after, pessimistic": {saga.Define("order", saga.Options{LockAfter: 3}, ok),
			[]string{"LockAfter 3", "only the Optimistic store"}},
		"lock wait": {saga.Define("order", saga.Options{LockWait: -1}, ok),
			[]string{"LockWait -1ns is negative"}},
		"state version": {saga.Define("order", saga.Options{StateVersion: -2}, ok), []string{"StateVersion -2"}},
		"no upcast": {saga.Define("order", saga.Options{StateVersion: 3}, ok, saga.Upcast(1, up)),
			[]string{"no Upcast from version 2"}},
		"upcast from now": {saga.Define("order", saga.Options{}, ok, saga.Upcast(1, up)),
			[]string{"Upcast from version 1"}},
		"two upcasts": {saga.Define("order", saga.Options{StateVersion: 2}, ok, saga.Upcast(1, up),
			saga.Upcast(1, up)), []string{"two Upcasts from version 1"}},
		"nil upcast": {saga.Define("order", saga.Options{StateVersion: 2}, ok,
			saga.Upcast[order, order](1, nil)), []string{"Upcast from version 1 is nil"}},
		"state is no struct": {saga.Define("order", saga.Options{}, start(nop[int, place])),
			[]string{"want a struct"}},
		"state fields": {saga.Define("order", saga.Options{}, start(nop[badState, place])), []string{
			"field hidden is unexported", `field Left is left out`, "field Any is an interface",
			"field Also is an interface", "field Ch is a chan", "field Fn is a func",
			"field Deep.Inner is an interface", "field Keys is a map with keys of type [2]int", "field Mu.",
			"field OneWay of type", "field B and X have the same name", "field Complex is a complex128",
		}},
		"all at once": {saga.Define("Order", saga.Options{LockWait: -1, StateVersion: -1}, start[badState](nil)),
			[]string{"Order", "LockWait", "StateVersion", "handler is nil", "field Any"}},
	}
	for name, test := range tests {
		err := test.def.Err()
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want %q in\n%v", name, want, err)
			}
		}
	}
}

// A start with a bad kind is one fault; reporting a missing start too would be wrong.
func TestStartOfABadKindIsOneFault(t *testing.T) {
	t.Parallel()
	d := saga.Define("order", saga.Options{}, saga.StartedBy(func(shouting) string { return "7" },
		nop[order, shouting]))
	want := `saga "order": StartedBy for saga_test.shouting: kind "Order.Place": name of 11 bytes`
	if err := d.Err(); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %s alone", err, want)
	}
}

func up(old order) (order, error) { return old, nil }

func TestSoundDefinitionsHaveNoFault(t *testing.T) {
	t.Parallel()
	literal := func(o *order, _ *saga.Context, _ place) error { return nil }
	for name, d := range map[string]*saga.Definition{
		"methods":          orders(saga.Options{}),
		"good state":       saga.Define("s", saga.Options{}, start(nop[goodState, place])),
		"pointer receiver": saga.Define("s", saga.Options{}, start((*byValue).right)),
		"promoted method":  saga.Define("s", saga.Options{}, start((*embeds).place)),
		"method of rules":  saga.Define("s", saga.Options{}, start(rules{}.place)),
		"function literal": saga.Define("s", saga.Options{}, start(literal)),
		"answer and by key": saga.Define("s", saga.Options{}, start((*order).place), saga.OnReply((*order).place),
			saga.OnTimeout((*order).place)),
		"upcasts to 3": saga.Define("s", saga.Options{StateVersion: 3}, start((*order).place),
			saga.Upcast(2, up), saga.Upcast(1, up)),
		"key from the header": saga.Define("s", saga.Options{},
			saga.StartedBy(func(_ place, in saga.Info) string { return in.Header("k") }, (*order).place)),
	} {
		if err := d.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDefinitionTellsRuntimesItsKinds(t *testing.T) {
	t.Parallel()
	d := orders(saga.Options{Store: saga.Optimistic})
	var got []string
	for _, k := range d.Kinds() {
		got = append(got, fmt.Sprintf("%v %s %v", k.Role, k.Kind, k.Type))
	}
	want := []string{
		"StartedBy order.place saga_test.place", "Handles card.charged saga_test.charged",
		"OnReply stock.left saga_test.stocked", "OnTimeout order.overdue saga_test.overdue",
		"OnTimeout edda.forget saga.Raw",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if d.Name() != "order" || d.Options().Store != saga.Optimistic || d.Options().StateVersion != 1 ||
		d.StateType() != reflect.TypeFor[order]() {
		t.Errorf("%s %v %+v %v", d.Name(), d.Options().Store, d.Options(), d.StateType())
	}
}

// keyOfPlace is a named type of key function, as in a program that shares one between sagas.
type keyOfPlace func(place) string

func TestKeyFunctionOfANamedType(t *testing.T) {
	d := saga.Define("order", saga.Options{}, saga.StartedBy(keyOfPlace(byOrder), (*order).place))
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
}
