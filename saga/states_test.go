package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

// member is a saga with two versions of its state that remembers completed instances.
func member() *saga.Definition {
	return saga.Define("member", saga.Options{StateVersion: 2, Remember: time.Hour},
		saga.StartedBy(func(m Enrol) string { return m.Member }, func(m *Member, ctx *saga.Context, _ Enrol) error {
			if m.Last != "" {
				ctx.Complete()
			}
			m.First, m.Last = "Ada", "Lovelace"
			return nil
		}),
		saga.Upcast(1, inTwo))
}

func TestStatesOfAnotherTypePanic(t *testing.T) {
	t.Parallel()
	defer func() {
		const want = `saga "member": StatesOf[saga_test.MemberV1]: its state is a saga_test.Member`
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}()
	saga.StatesOf[MemberV1](member())
}

// Decode reads a live instance, an instance of an older release, and a remembered instance.
func TestStatesAreDecoded(t *testing.T) {
	t.Parallel()
	def := member()
	run, members := sagatest.New(t, def), saga.StatesOf[Member](def)
	run.Given("old", 1, `{"Name":"Ada Lovelace"}`)
	for _, key := range []string{"new", "over", "over"} {
		if err := run.Deliver(Enrol{Member: key}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"old", "new", "over"} {
		i, ok := run.Instance(key)
		if !ok {
			t.Fatalf("there is no %s", key)
		}
		got, err := members.Decode(i)
		if want := (Member{First: "Ada", Last: "Lovelace"}); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", key, got, err, want)
		}
	}
	if run.Live("over") {
		t.Error("the instance that is over lives")
	}
}

func TestStatesThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	run := sagatest.New(t, member())
	run.Given("7", 2, `{"Last":"Lovelace"}`)
	good, _ := run.Instance("7")
	changed := func(change func(*saga.Instance)) saga.Instance {
		i := good
		change(&i)
		return i
	}
	for name, c := range map[string]struct {
		of   saga.Instance
		want string
	}{
		"none":    {saga.Instance{}, "it has no state"},
		"unsaved": {changed(func(i *saga.Instance) { i.New = true }), "it has no state"},
		"foreign": {changed(func(i *saga.Instance) { i.Saga = "order" }), "belongs to saga order"},
		"broken":  {changed(func(i *saga.Instance) { i.State = []byte(`{"Last":7}`) }), saga.ErrState.Error()},
		"newer":   {changed(func(i *saga.Instance) { i.StateVersion = 3 }), saga.ErrNewerState.Error()},
	} {
		got, err := saga.StatesOf[Member](member()).Decode(c.of)
		if err == nil || !strings.Contains(err.Error(), c.want) || got != (Member{}) {
			t.Errorf("%s: %v %v, want %q", name, got, err, c.want)
		}
	}
}

// fixed is a reader of one instance.
type fixed struct{ err error }

func (f fixed) Instance(_ context.Context, d *saga.Definition, key string, into any) (saga.Instance, bool, error) {
	if d.Name() != "member" || key != "7" {
		return saga.Instance{}, false, f.err
	}
	*into.(*Member) = Member{First: "Ada"}
	return saga.Instance{}, true, f.err
}

func TestStatesAreReadThroughAReader(t *testing.T) {
	t.Parallel()
	members := saga.StatesOf[Member](member())
	if got, ok, err := members.Read(t.Context(), fixed{}, "7"); got.First != "Ada" || !ok || err != nil {
		t.Errorf("%v %v %v", got, ok, err)
	}
	if got, ok, err := members.Read(t.Context(), fixed{}, "8"); got != (Member{}) || ok || err != nil {
		t.Errorf("another key: %v %v %v", got, ok, err)
	}
	away := errors.New("away")
	if _, _, err := members.Read(t.Context(), fixed{away}, "7"); !errors.Is(err, away) {
		t.Errorf("%v, want %v", err, away)
	}
}
