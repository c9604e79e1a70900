package history

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is an id of version 7 made this many milliseconds after noon.
func at(millis int64, n byte) (id saga.ID) {
	ms := noon.UnixMilli() + millis
	for i := 5; i >= 0; i-- {
		id[i] = byte(ms)
		ms >>= 8
	}
	id[6], id[8], id[15] = 0x70, 0x80, n
	return id
}

func newPage(o Options) *Page {
	schema, err := pg.ParseSchema("edda")
	if err != nil {
		panic(err)
	}
	k := Keeper{Store: New(schema), Host: "a/1"}
	p := k.NewPage("orders", func() saga.ID { return at(0, 0) })
	p.Begin(o, noon)
	return p
}

func read(t *testing.T, p *Page) content {
	t.Helper()
	c, err := decodePage(bytes.Clone(p.out.buf), wanted{all: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var unread = cmpopts.IgnoreUnexported(Version{})

func TestPageIsReadAsItWasWritten(t *testing.T) {
	p := newPage(Options{Level: Bodies, Sample: 1})
	first := p.AddChange(&Change{ID: at(1, 1), Saga: "order", Key: "7", Version: 3, Kind: Changed, Previous: at(0, 9),
		State: []byte(`{"n":3}`)})
	p.Add(&Attempt{
		Info: &saga.Info{ID: at(2, 2), Kind: "order.pay", From: "shop", ConversationID: at(0, 5), RelatedTo: at(0, 6),
			Attempt: 2, Sent: noon.Add(-time.Second), Due: noon.Add(time.Hour),
			Firing: &saga.Firing{Manifest: "night", Run: at(3, 3)}},
		Fate: Handled, Took: 1500 * time.Microsecond, Change: first, Body: []byte("{}"),
		Sent: []saga.Outgoing{{To: "cards", Body: []byte("1"),
			Info: saga.Info{ID: at(4, 4), Kind: "order.pay", Intent: saga.Command, Due: noon.Add(time.Minute)}}},
		Cancelled: []saga.Cancelled{{ID: at(5, 5)}},
	})
	p.Add(&Attempt{Info: &saga.Info{ID: at(6, 6), Kind: "order.pay", Attempt: 1, Intent: saga.Event}, Fate: Died,
		Instance: at(1, 1), Err: "no card", Reason: "permanent"})
	c := read(t, p)
	if c.host != "a/1" || !c.at.Equal(noon) {
		t.Errorf("host %q, at %v", c.host, c.at)
	}
	versions := []Version{{ID: at(1, 1), Saga: "order", Key: "7", Version: 3, Change: Changed, Previous: at(0, 9),
		State: []byte(`{"n":3}`)}}
	if diff := cmp.Diff(versions, c.versions, unread); diff != "" {
		t.Error(diff)
	}
	entries := []Entry{
		{
			At: noon, Host: "a/1", Fate: Handled, Took: 1500 * time.Microsecond, Instance: at(1, 1), Version: 3,
			Saga: "order", Key: "7",
			Info: Message{ID: at(2, 2), Conversation: at(0, 5), RelatedTo: at(0, 6), Kind: "order.pay", From: "shop",
				Attempt: 2, Sent: noon.Add(-time.Second), Due: noon.Add(time.Hour), Manifest: "night", Run: at(3, 3),
				Size: 2, Body: []byte("{}")},
			Sent: []Message{{ID: at(4, 4), Conversation: at(0, 5), RelatedTo: at(2, 2), Kind: "order.pay", To: "cards",
				Due: noon.Add(time.Minute), Size: 1, Body: []byte("1")}},
			Cancelled: []saga.ID{at(5, 5)},
		},
		{
			At: noon, Host: "a/1", Fate: Died, Instance: at(1, 1), Error: "no card", Reason: "permanent",
			Info: Message{ID: at(6, 6), Conversation: at(6, 6), Kind: "order.pay", Attempt: 1, Intent: saga.Event},
		},
	}
	if diff := cmp.Diff(entries, c.entries); diff != "" {
		t.Error(diff)
	}
}

// A decoder that skips unwanted parts decodes the wanted ones as if it decoded all.
func TestPartOfAPage(t *testing.T) {
	p := newPage(Options{Level: Bodies, Sample: 1})
	for n := range byte(3) {
		change := p.AddChange(&Change{ID: at(1, n), Saga: "order", Key: fmt.Sprint(n), Version: int64(n), Kind: Changed,
			State: []byte("{}")})
		p.Add(&Attempt{Info: &saga.Info{ID: at(2, n), Kind: fmt.Sprintf("kind%d", n), From: "a",
			Firing: &saga.Firing{Manifest: fmt.Sprint("m", n), Run: at(3, n)}},
			Change: change, Fate: Handled, Err: "error",
			Reason: "reason", Body: []byte("body"), Cancelled: []saga.Cancelled{{ID: at(4, n)}},
			Sent: []saga.Outgoing{{To: fmt.Sprint("to", n), Body: []byte("out"),
				Info: saga.Info{ID: at(5, n), Kind: "o", Due: noon}}}})
	}
	all := read(t, p)
	for n := range byte(3) {
		for what, want := range map[string]wanted{
			"message": {messages: map[saga.ID]bool{at(2, n): true}}, "instance": {instance: at(1, n)},
		} {
			part, err := decodePage(bytes.Clone(p.out.buf), want)
			if err != nil || len(part.entries) != 1 || what == "instance" && len(part.versions) != 1 {
				t.Fatalf("%s %d: %+v, %v", what, n, part, err)
			}
			if diff := cmp.Diff(all.entries[n], part.entries[0]); diff != "" {
				t.Errorf("%s %d: %s", what, n, diff)
			}
			if what == "instance" {
				if diff := cmp.Diff(all.versions[n], part.versions[0], unread); diff != "" {
					t.Errorf("%s %d: %s", what, n, diff)
				}
			}
		}
	}
}

func TestLevelsSayWhatAPageKeeps(t *testing.T) {
	for level, want := range map[Level]string{
		Off: "false", Steps: "true state= body=<nil>", States: "true state={} body=<nil>",
		Bodies: "true state={} body=[49]",
	} {
		p := newPage(Options{Level: level, Sample: 1})
		got := fmt.Sprint(p.On())
		if p.On() {
			p.AddChange(&Change{ID: at(1, 1), Saga: "s", Key: "k", Kind: Began, State: []byte("{}")})
			p.Add(&Attempt{Info: &saga.Info{ID: at(2, 2), Kind: "k"}, Fate: Handled, Body: []byte("1")})
			c := read(t, p)
			body := fmt.Sprint(c.entries[0].Info.Body)
			if c.entries[0].Info.Body == nil {
				body = "<nil>"
			}
			got += fmt.Sprintf(" state=%s body=%s", c.versions[0].State, body)
		}
		if got != want {
			t.Errorf("%v: %s, want %s", level, got, want)
		}
	}
}

func TestLongBodiesAreNotKept(t *testing.T) {
	p := newPage(Options{Level: Bodies, Sample: 1})
	for _, size := range []int{mostBody, mostBody + 1} {
		p.Add(&Attempt{Info: &saga.Info{ID: at(2, 2), Kind: "k"}, Fate: Handled, Body: make([]byte, size)})
	}
	for p.bodies+mostBody <= mostBodies {
		p.Add(&Attempt{Info: &saga.Info{ID: at(2, 2), Kind: "k"}, Fate: Handled, Body: make([]byte, mostBody)})
	}
	p.Add(&Attempt{Info: &saga.Info{ID: at(2, 3), Kind: "k"}, Fate: Handled, Body: make([]byte, mostBody)})
	c := read(t, p)
	last := c.entries[len(c.entries)-1]
	if len(c.entries[0].Info.Body) != mostBody || c.entries[1].Info.Body != nil ||
		c.entries[1].Info.Size != mostBody+1 || last.Info.Body != nil || last.Info.Size != mostBody {
		t.Errorf("kept %d of %d, %d of %d, and %d of %d beyond the limit of a page", len(c.entries[0].Info.Body),
			c.entries[0].Info.Size, len(c.entries[1].Info.Body), c.entries[1].Info.Size, len(last.Info.Body),
			last.Info.Size)
	}
}

// A large state that changes little is written as a difference, and every 16th version whole.
func TestStatesAreBuiltFromDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		states := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 600), 2, 40).Draw(t, "states")
		var versions []Version
		whole := 0
		for n := range states {
			if n > 0 && rapid.Bool().Draw(t, "alike") { // otherwise differences would be rare
				states[n] = bytes.Clone(states[n-1])
				if len(states[n]) > 0 {
					states[n][rapid.IntRange(0, len(states[n])-1).Draw(t, "place")]++
				}
			}
			p := newPage(Options{Level: States, Sample: 1})
			change := Change{ID: at(1, 1), Saga: "s", Key: "k", Kind: Changed, Version: int64(n + 1), State: states[n]}
			if n > 0 {
				change.Previous, change.Before = at(0, 0), states[n-1]
			}
			p.AddChange(&change)
			c, err := decodePage(bytes.Clone(p.out.buf), wanted{all: true})
			if err != nil {
				t.Fatal(err)
			}
			v := c.versions[0]
			if whole++; v.state == stateWhole {
				whole = 0
			} else if whole >= wholeEvery {
				t.Fatalf("no whole state in %d versions", whole)
			}
			if n > 0 {
				v.build(versions[n-1].State)
			}
			if !bytes.Equal(v.State, states[n]) {
				t.Fatalf("version %d is %q, want %q", n+1, v.State, states[n])
			}
			versions = append(versions, v)
		}
	})
}

// However little changes, a reader finds a whole state within sixteen versions.
func TestEverySixteenthStateIsWhole(t *testing.T) {
	state := bytes.Repeat([]byte("a"), 1000)
	for n := int64(2); n < 100; n++ {
		p := newPage(Options{Level: States, Sample: 1})
		p.AddChange(&Change{ID: at(1, 1), Kind: Changed, Version: n, Previous: at(0, 1), Before: state, State: state})
		if v := read(t, p).versions[0]; (v.state == stateWhole) != (n%16 == 0) {
			t.Errorf("version %d is written as %d", n, v.state)
		}
	}
}

// A difference from a different state than the preceding one gives no state, instead of a wrong one.
func TestStateIsNotBuiltFromAnother(t *testing.T) {
	before, after := bytes.Repeat([]byte("a"), 1000), bytes.Repeat([]byte("a"), 1001)
	p := newPage(Options{Level: States, Sample: 1})
	p.AddChange(&Change{ID: at(1, 1), Kind: Changed, Version: 2, Previous: at(0, 1), Before: before, State: after})
	v := read(t, p).versions[0]
	if v.state != stateDelta {
		t.Fatal("it was written whole")
	}
	if v.build(bytes.Repeat([]byte("b"), 1000)) || v.State != nil {
		t.Errorf("built %d bytes", len(v.State))
	}
	if !v.build(before) || !bytes.Equal(v.State, after) {
		t.Error("not built from the state before")
	}
}

// A difference is useful only if the preceding page has the preceding state, and exists as long as this page.
func TestStateBesideAnUnknownPageIsWhole(t *testing.T) {
	state := bytes.Repeat([]byte("a"), 1000)
	for name, previous := range map[string]saga.ID{
		"no page": {}, "a page without states": at(0, 2), "an old page": at(-knownFor.Milliseconds(), 1),
	} {
		p := newPage(Options{Level: States, Sample: 1})
		p.AddChange(&Change{ID: at(1, 1), Kind: Changed, Version: 2, Previous: previous, Before: state, State: state})
		if v := read(t, p).versions[0]; v.state != stateWhole {
			t.Errorf("%s: it is a difference", name)
		}
	}
	for o, want := range map[Options]byte{{Level: Steps}: 0, {Level: States, Sample: 0.5}: 0, {Level: Bodies}: 1} {
		if id := newPage(o).ID(); id[15]&1 != want {
			t.Errorf("%+v: the id of the page ends with %b", o, id[15]&1)
		}
	}
}

func TestSampledStatesAreWhole(t *testing.T) {
	state := bytes.Repeat([]byte("a"), 1000)
	p := newPage(Options{Level: States, Sample: 0.5})
	p.AddChange(&Change{ID: at(1, 1), Kind: Changed, Version: 2, Previous: at(0, 1), Before: state, State: state})
	if v := read(t, p).versions[0]; v.state != stateWhole {
		t.Error("it is a difference from a version that may be in no page")
	}
}

func TestBytesThatAreNoPage(t *testing.T) {
	p := newPage(Options{Level: Bodies, Sample: 1})
	change := p.AddChange(&Change{ID: at(1, 1), Saga: "order", Key: "7", Kind: Began, State: []byte(`{"n":3}`)})
	p.Add(&Attempt{Info: &saga.Info{ID: at(2, 2), Kind: "order.pay"}, Change: change, Fate: Handled, Body: []byte("1"),
		Sent: []saga.Outgoing{{Info: saga.Info{ID: at(4, 4), Kind: "x"}}}})
	good := p.out.buf
	for n := range good { // each prefix, and each page with one changed byte, gives an error or a page, and no panic
		_, _ = decodePage(good[:n], wanted{all: n%2 == 0})
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			bad := bytes.Clone(good)
			bad[n] = b
			_, _ = decodePage(bad, wanted{all: b%2 == 0})
		}
	}
	newer := bytes.Clone(good)
	newer[0] = format + 1
	if _, err := decodePage(newer, wanted{}); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer page: %v", err)
	}
	if _, err := decodePage(nil, wanted{}); err == nil {
		t.Error("nothing is a page")
	}
}

func FuzzDecodePage(f *testing.F) {
	p := newPage(Options{Level: Bodies, Sample: 1})
	p.Add(&Attempt{Info: &saga.Info{ID: at(2, 2), Kind: "order.pay"}, Fate: Handled, Body: []byte("1")})
	f.Add(bytes.Clone(p.out.buf))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = decodePage(b, wanted{})
		_, _ = decodePage(b, wanted{all: true})
	})
}

// Each id of a page is in one of its ranges, no range is too long for readers, and ids of one moment share one.
func TestRangesOfIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPage(Options{Level: Steps, Sample: 1})
		for n := range rapid.IntRange(1, 50).Draw(t, "ids") {
			p.ids = append(p.ids, at(rapid.Int64Range(0, 1000).Draw(t, "ms"), byte(n)))
		}
		ids := append([]saga.ID{}, p.ids...)
		first, last := p.rangesOfIDs()
		for _, id := range ids {
			in := 0
			for n := range first {
				until := lastOfRange(id)
				if id.Compare(first[n]) >= 0 && id.Compare(last[n]) <= 0 && last[n].Compare(until) <= 0 {
					in++
				}
			}
			if in != 1 {
				t.Fatalf("%s is in %d ranges", id, in)
			}
		}
		if most := 1 + 1000/rangeMillis; len(first) > most {
			t.Errorf("%d ranges of ids of one second, want at most %d", len(first), most)
		}
	})
	for id, want := range map[saga.ID]string{
		{0, 0, 0, 0, 0, 0xff}:                   "00000000-0163-ffff-ffff-ffffffffffff",
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}: "ffffffff-ffff-ffff-ffff-ffffffffffff",
	} {
		if got := saga.ID(lastOfRange(id)).String(); got != want {
			t.Errorf("the last id of a range with %s is %s, want %s", id, got, want)
		}
	}
}

func TestSampleKeepsItsPart(t *testing.T) {
	for _, sample := range []float64{0.01, 0.1, 0.5, 0.9} {
		kept := 0
		const n = 20_000
		for i := range n {
			id := at(int64(i/100), byte(i))
			id[14] = byte(i >> 8)
			if (Options{Level: Steps, Sample: sample}).samples(id) {
				kept++
			}
		}
		if part := float64(kept) / n; part < sample*0.9 || part > sample*1.1 {
			t.Errorf("%v of %v are kept", part, sample)
		}
	}
	if !(Options{}).samples(at(1, 1)) || !(Options{Sample: 1}).samples(at(1, 1)) {
		t.Error("all are to be kept")
	}
}

// Of two transactions, the later one may have committed first: versions keep their order.
func TestVersionsStayInOrder(t *testing.T) {
	version := func(n int64, second int) Version {
		return Version{Version: n, At: noon.Add(time.Duration(second) * time.Second)}
	}
	merged := merge([]Version{version(1, 1), version(2, 5), version(3, 4)},
		[]Version{version(0, 0), version(0, 3), version(0, 9)})
	got := ""
	for _, v := range merged {
		got += fmt.Sprintf("%d@%d ", v.Version, v.At.Second())
	}
	if want := "0@0 1@1 0@3 2@5 3@4 0@9 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A page about a change by an operator has no messages, and names the operator.
func TestPageOfAnOperator(t *testing.T) {
	for _, kind := range []ChangeKind{Repaired, Retimed, Stopped} {
		p := newPage(Options{Level: States, Sample: 0.5})
		p.AddChange(&Change{ID: at(1, 1), Saga: "order", Key: "7", Version: 4, Kind: kind, Previous: at(0, 9),
			State: []byte(`{"n":4}`)})
		c := read(t, p)
		v := c.versions[0]
		if v.By != "a/1" || v.Change != kind || string(v.State) != `{"n":4}` || len(c.entries) != 0 {
			t.Errorf("%s: %+v", kind, v)
		}
		pipeline := &pgx.Batch{}
		if p.Queue(pipeline); pipeline.Len() == 0 || pipeline.Len() == 2 != (kind == Stopped) {
			t.Errorf("%s: %d statements", kind, pipeline.Len())
		}
	}
}
