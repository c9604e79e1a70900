package act

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestActionsAreWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, a := range All() {
		if seen[a.Name] || seen[a.Pattern] {
			t.Errorf("%s at %s is there twice", a.Name, a.Pattern)
		}
		seen[a.Name], seen[a.Pattern] = true, true
		counts := strings.TrimPrefix(strings.Repeat(",7", strings.Count(a.done, "%d")), ",")
		if told := Told(a.Name, counts); told == "" || strings.Contains(told, "%") {
			t.Errorf("of %s is told %q", a.Name, told)
		}
		if len(a.Rights) == 0 || a.Button == "" || a.Says == "" || (a.do == nil) == (a.file == nil) ||
			!strings.HasPrefix(a.Blank().Shell, "edda ") {
			t.Errorf("%s lacks something: %+v", a.Name, a)
		}
		for part := range strings.SplitSeq(a.Pattern, "/") {
			name := strings.Trim(part, "{}")
			named := func(f field) bool { return f.name == name }
			if name != part && !slices.ContainsFunc(a.fields, named) {
				t.Errorf("%s has no field %s", a.Name, name)
			}
		}
	}
}

// A name from any source is one argument of the command, and one part of the address.
func TestNamesAreQuoted(t *testing.T) {
	t.Parallel()
	f := pauseEndpoint.form(values{"endpoint", "a/b'; rm -rf ~ #"})
	if f.Shell != `edda endpoint pause 'a/b'\''; rm -rf ~ #'` ||
		f.Address != "endpoints/a%2Fb%27%3B%20rm%20-rf%20~%20%23/pause" {
		t.Errorf("the command is %s, the address %s", f.Shell, f.Address)
	}
	f = Timeout("order", "it's", "due $(x)")[0]
	if want := `edda saga timeout order 'it'\''s' 'due $(x)' --fire`; f.Shell != want {
		t.Errorf("the command is %s, want %s", f.Shell, want)
	}
}

// A state that the actor may see in full is edited in full, and any other one by a patch. Invisible characters are
// escaped as in JSON.
func TestAStateIsEditedAsItIsShown(t *testing.T) {
	t.Parallel()
	forms := func(s Seen) (names []string, state string) {
		for _, f := range Instance(s) {
			names = append(names, f.Name)
			for _, c := range f.Controls {
				if c.Name == "state" {
					state = c.Value
				}
			}
		}
		return names, state
	}
	names, state := forms(Seen{Saga: "order", Key: "7", Version: 3, State: []byte("{\"A\":\"x\u202ey\"}")})
	if fmt.Sprint(names) != "[saga.send saga.repair saga.end]" || state != "{\n  \"A\": \"x\\u202ey\"\n}" {
		t.Errorf("the forms are %v, the state is %q", names, state)
	}
	if names, _ = forms(Seen{Saga: "order", Key: "7"}); fmt.Sprint(names) != "[saga.send saga.patch saga.end]" {
		t.Errorf("without a state the forms are %v", names)
	}
	if names, _ = forms(Seen{Saga: "order", Key: "7", Over: true}); len(names) > 0 {
		t.Errorf("of an instance that has completed the forms are %v", names)
	}
}

func TestAgreement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		is            int64
		count, typed  string
		agrees, typeN bool
	}{
		{1, "1", "yes", true, false}, {1, "", "yes", false, false}, {1, "1", "", false, false},
		{5, "5", "yes", true, false}, {5, "4", "yes", false, false}, {4, "5", "yes", true, false},
		{1000, "1000", "yes", true, false}, {1001, "1001", "yes", false, true}, {1001, "1001", "1,001", true, true},
		{1001, "1001", "1 001", true, true}, {1001, "1002", "1001", false, true}, {3, "2000", "yes", false, false},
		{1001, "5", "5", false, true}, {1, "x", "x", false, false},
	} {
		p := &Preview{Count: c.is}
		in := Input{values: map[string]string{"count": c.count, "confirm": c.typed}}
		if got := p.agreed(in); got != c.agrees || p.Type() != c.typeN {
			t.Errorf("of %d, asked for %q, %q agrees: %v; it has to be typed: %v", c.is, c.count, c.typed, got,
				p.Type())
		}
	}
}
