package saga_test

import (
	"encoding/json"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
)

func TestIDText(t *testing.T) {
	t.Parallel()
	const text = "0190b5a0-7b7c-7cc2-8d5e-0123456789ab"
	id, err := saga.ParseID(text)
	if err != nil || id.String() != text || id.IsZero() {
		t.Fatalf("%v, %v", id, err)
	}
	b, err := json.Marshal(map[saga.ID]saga.ID{id: id})
	if want := `{"` + text + `":"` + text + `"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	for _, wrong := range []string{"", text[1:], text + "0", "0190b5a07b7c7cc28d5e0123456789ab0000",
		"0190b5a0-7b7c-7cc2-8d5e-0123456789ag"} {
		if _, err := saga.ParseID(wrong); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}

func TestIntentText(t *testing.T) {
	t.Parallel()
	for i, want := range []string{"send", "publish", "reply", "timeout"} {
		if got := saga.Intent(i).String(); got != want {
			t.Errorf("intent %d is %q, want %q", i, got, want)
		}
	}
	if saga.Intent(9).String() != "intent(9)" {
		t.Error(saga.Intent(9))
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	var i saga.Info
	i.AddHeader("a", "1")
	i.AddHeader("b", "2")
	var order string
	for name := range i.Headers() {
		order += name
	}
	if order != "ab" || i.Header("b") != "2" || i.Header("c") != "" || i.HeaderCount() != 2 {
		t.Errorf("%q %v", order, maps.Collect(i.Headers()))
	}
}

// A header of 600 kB with 40,000 names took two seconds to read, because each name was searched among all others.
func TestManyHeadersAreAddedOneByOne(t *testing.T) {
	t.Parallel()
	const many = 1_000_000
	var i saga.Info
	for n, begun := 0, time.Now(); n < many; n++ {
		if i.AddHeader(strconv.Itoa(n), "first"); time.Since(begun) > 20*time.Second {
			t.Fatalf("%d headers took %v", n, time.Since(begun))
		}
	}
	for _, n := range []int{0, 15, 16, 17, many - 1} {
		i.AddHeader(strconv.Itoa(n), "second")
	}
	if i.HeaderCount() != many || i.Header("0") != "second" || i.Header("1") != "first" || i.Header("17") != "second" ||
		i.Header("no") != "" {
		t.Errorf("%d headers, %q %q %q", i.HeaderCount(), i.Header("0"), i.Header("1"), i.Header("17"))
	}
	at := 0
	for name := range i.Headers() {
		if name != strconv.Itoa(at) {
			t.Fatalf("header %d is %s", at, name)
		}
		at++
	}
}
