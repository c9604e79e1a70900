package saga_test

import (
	"fmt"
	"strings"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

type Enrol struct{ Member string }

func (Enrol) Kind() string { return "member.enrol" }

// MemberV1 is the state as the previous release stored it.
type MemberV1 struct{ Name string }

// Member is the state of version 2.
type Member struct{ First, Last string }

func (m *Member) Enrol(*saga.Context, Enrol) error { return nil }

func inTwo(old MemberV1) (Member, error) {
	first, last, _ := strings.Cut(old.Name, " ")
	return Member{First: first, Last: last}, nil
}

// At its next message, an instance that an older release has stored is converted to the new state. sagatest has such
// an instance in a test.
func ExampleUpcast() {
	members := saga.Define("member", saga.Options{StateVersion: 2},
		saga.StartedBy(func(m Enrol) string { return m.Member }, (*Member).Enrol),
		saga.Upcast(1, inTwo))

	run := sagatest.New(t, members) // t is the *testing.T of a test
	run.Given("7", 1, `{"Name":"Ada Lovelace"}`)
	check(run.Deliver(Enrol{Member: "7"}))
	now := sagatest.State[Member](run, "7")
	fmt.Println(now.Last + ", " + now.First)
	// Output: Lovelace, Ada
}
