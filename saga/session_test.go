package saga_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
)

type do = func(*order, *saga.Context) error

// acting is a saga whose start message runs f.
func acting(f do, o ...saga.HandleOption) *saga.Definition {
	return saga.Define("order", saga.Options{},
		saga.StartedBy(byOrder, func(s *order, ctx *saga.Context, _ place) error { return f(s, ctx) }, o...),
		saga.OnTimeout((*order).overdue))
}

// act runs f as the first step of a new instance.
func act(t *testing.T, f do) (*saga.Session, saga.Outcome) {
	t.Helper()
	d := acting(f)
	s := open(t, d, fresh())
	return s, step(t, s, d, deliver(place{Order: "7"}))
}

type typedNil struct{}

func (*typedNil) Error() string { return "never" }

func TestWhatAHandlerReturns(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	var permanent *saga.PermanentError
	var after *saga.RetryAfterError
	var panicked *saga.PanicError
	tests := map[string]struct {
		f  do
		ok func(saga.Outcome) bool
	}{
		"nil": {func(*order, *saga.Context) error { return nil },
			func(o saga.Outcome) bool { return o.Err == nil }},
		"typed nil": {func(*order, *saga.Context) error { var e *typedNil; return e },
			func(o saga.Outcome) bool { return o.Err == nil }},
		"permanent nil": {func(*order, *saga.Context) error { return saga.Permanent(nil) },
			func(o saga.Outcome) bool { return o.Err == nil }},
		"retry nil": {func(*order, *saga.Context) error { return saga.RetryAfter(1, nil) },
			func(o saga.Outcome) bool { return o.Err == nil }},
		"error": {func(*order, *saga.Context) error { return boom },
			func(o saga.Outcome) bool { return errors.Is(o.Err, boom) && o.Err.Error() == "boom" }},
		"permanent": {func(*order, *saga.Context) error { return fmt.Errorf("x: %w", saga.Permanent(boom)) },
			func(o saga.Outcome) bool { return errors.As(o.Err, &permanent) && errors.Is(o.Err, boom) }},
		"retry after": {func(*order, *saga.Context) error { return saga.RetryAfter(time.Second, boom) },
			func(o saga.Outcome) bool { return errors.As(o.Err, &after) && after.After == time.Second }},
		"discard": {func(*order, *saga.Context) error { return saga.Discard("late") },
			func(o saga.Outcome) bool { return o.Err == nil && o.Discard == "late" }},
		"discard in silence": {func(*order, *saga.Context) error { return saga.Discard("") },
			func(o saga.Outcome) bool { return o.Discard != "" }},
		"panic": {func(*order, *saga.Context) error { panic(io.EOF) }, func(o saga.Outcome) bool {
			return errors.As(o.Err, &panicked) && errors.Is(o.Err, io.EOF) &&
				strings.Contains(string(panicked.Stack), "session_test.go")
		}},
		"nil dereference": {func(*order, *saga.Context) error { var o *order; o.Seen = 1; return nil },
			func(o saga.Outcome) bool { return errors.As(o.Err, &panicked) }},
	}
	for name, test := range tests {
		_, out := act(t, func(s *order, ctx *saga.Context) error {
			ctx.Send(paid{})
			return test.f(s, ctx)
		})
		if !test.ok(out) {
			t.Errorf("%s: %+v", name, out)
		}
		if good := out.Err == nil && out.Discard == ""; good != (len(out.Out) == 1) {
			t.Errorf("%s: sent %d", name, len(out.Out))
		}
	}
}

// TestFaultsFailTheStepWhateverItReturns: each fault is permanent, and its error names the mistake.
func TestFaultsFailTheStepWhateverItReturns(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 9<<10)
	tests := map[string]struct {
		f    func(*saga.Context)
		want string
	}{
		"nil message": {func(c *saga.Context) { c.Send(nil) }, "the message is nil"},
		"bad kind": {func(c *saga.Context) { c.Publish(saga.Raw{Name: "Bad Kind"}) },
			`publish: kind "Bad Kind": name`},
		"bad text": {func(c *saga.Context) { c.Send(paid{Order: bad}) },
			"encode order.paid: text is not UTF-8"},
		"large body": {func(c *saga.Context) { c.Send(paid{Order: strings.Repeat("x", 1<<20)}) },
			"limit 1048576: too large"},
		"large raw": {func(c *saga.Context) { c.Send(saga.Raw{Name: "raw", Body: make([]byte, 1<<20+1)}) },
			"1048577 bytes"},
		"nil option": {func(c *saga.Context) { c.Send(paid{}, nil) }, "a send option is nil"},
		"zero time":  {func(c *saga.Context) { c.Send(paid{}, saga.At(time.Time{})) }, "the zero time"},
		"year 10000": {func(c *saga.Context) { c.Send(paid{}, saga.At(noon.AddDate(8000, 0, 0))) },
			"year 10026"},
		"far away": {func(c *saga.Context) { c.Send(paid{}, saga.At(noon.AddDate(11, 0, 0))) },
			"due at 2037"},
		"long delay":      {func(c *saga.Context) { c.Send(paid{}, saga.Delay(1<<63-1)) }, "delay 2562047h"},
		"delay and at":    {func(c *saga.Context) { c.Send(paid{}, saga.Delay(1), saga.At(noon)) }, "not both"},
		"zero id":         {func(c *saga.Context) { c.Send(paid{}, saga.WithID(saga.ID{})) }, "WithID"},
		"no endpoint":     {func(c *saga.Context) { c.Send(paid{}, saga.To("")) }, "To: name"},
		"empty header":    {func(c *saga.Context) { c.Send(paid{}, saga.WithHeader("", "x")) }, "empty name"},
		"reserved header": {func(c *saga.Context) { c.Send(paid{}, saga.WithHeader("Edda-Id", "x")) }, "reserved"},
		"bad header":      {func(c *saga.Context) { c.Send(paid{}, saga.WithHeader("x", bad)) }, "not UTF-8"},
		"header with NUL": {func(c *saga.Context) { c.Send(paid{}, saga.WithHeader("x\x00", "y")) }, "NUL"},
		"long header":     {func(c *saga.Context) { c.Send(paid{}, saga.WithHeader("x", long)) }, "limit 8192"},
		"many headers":    {func(c *saga.Context) { c.Send(paid{}, headers(65, "")...) }, "65 headers"},
		"much header":     {func(c *saga.Context) { c.Send(paid{}, headers(64, long[:2000])...) }, "headers of"},
		"undeclared timeout": {func(c *saga.Context) { c.Timeout(1, paid{}) },
			"no OnTimeout for it; it has: order.overdue"},
		"timeout zero time":  {func(c *saga.Context) { c.TimeoutAt(time.Time{}, overdue{}) }, "the zero time"},
		"timeout too far":    {func(c *saga.Context) { c.Timeout(1<<62, overdue{}) }, "limit 87600h"},
		"timeout no name":    {func(c *saga.Context) { c.Timeout(1, overdue{}, saga.Named("")) }, "timeout name"},
		"timeout nil option": {func(c *saga.Context) { c.Timeout(1, overdue{}, nil) }, "an option is nil"},
		"timeouts": {func(c *saga.Context) {
			for range 1001 {
				c.Timeout(1, overdue{})
			}
		}, "more than 1000 pending"},
		"messages": {func(c *saga.Context) {
			for range 10_001 {
				c.Send(overdue{})
			}
		}, "more than 10000 messages"},
	}
	for name, test := range tests {
		for _, returned := range []error{nil, saga.RetryAfter(time.Second, io.EOF), saga.Discard("x")} {
			s, out := act(t, func(_ *order, ctx *saga.Context) error { test.f(ctx); return returned })
			var permanent *saga.PermanentError
			var after *saga.RetryAfterError
			if !errors.As(out.Err, &permanent) || errors.As(out.Err, &after) ||
				!strings.Contains(out.Err.Error(), test.want) {
				t.Errorf("%s, returned %v: %v, want %q", name, returned, out.Err, test.want)
			}
			if s.Live() || s.Changed() || len(out.Out) > 0 {
				t.Errorf("%s: something remained: %+v", name, out)
			}
		}
	}
}

func headers(n int, value string) (o []saga.SendOption) {
	for i := range n {
		o = append(o, saga.WithHeader(fmt.Sprintf("h%d", i), value))
	}
	return o
}

func TestSendOptions(t *testing.T) {
	t.Parallel()
	given := numbered(77)
	_, out := act(t, func(_ *order, ctx *saga.Context) error {
		ctx.Send(paid{}, saga.Delay(-1))
		ctx.Send(paid{}, saga.Delay(time.Nanosecond), saga.WithID(given), saga.WithHeader("a", "b"), saga.To("web"))
		ctx.Send(paid{}, saga.At(noon.Add(1500*time.Nanosecond)))
		ctx.Send(paid{}, saga.At(noon.Add(-time.Hour)))
		ctx.Reply(paid{})
		return nil
	})
	if out.Err != nil || len(out.Out) != 5 {
		t.Fatalf("%+v", out)
	}
	o := out.Out
	if !o[0].Info.Due.IsZero() || !o[3].Info.Due.IsZero() {
		t.Error("a delay that is none, or a past time, is not at once")
	}
	if !o[1].Info.Due.Equal(noon.Add(time.Microsecond)) || !o[2].Info.Due.Equal(noon.Add(2*time.Microsecond)) {
		t.Errorf("due %v and %v: not rounded up", o[1].Info.Due, o[2].Info.Due)
	}
	if o[1].Info.ID != given || !o[1].GivenID || o[0].GivenID || o[1].To != "web" || o[1].Info.Header("a") != "b" {
		t.Errorf("options: %+v", o[1])
	}
	if o[4].To != "web" || o[4].Info.Intent != saga.Answer {
		t.Errorf("reply: %+v", o[4])
	}
}

// TestComposeFromOutside: a sender without a message in hand starts a conversation; without a clock, the database
// adds the delay.
func TestComposeFromOutside(t *testing.T) {
	t.Parallel()
	tn := saga.Runtime{NewID: ids()}
	out, err := tn.Compose(saga.Command, paid{Order: "7"}, saga.Delay(time.Minute))
	i := out.Info
	if err != nil || i.ID != numbered(101) || i.CorrelationID != i.ID || i.ConversationID != i.ID ||
		!i.RelatedTo.IsZero() || i.From != "" {
		t.Errorf("%+v, %v", i, err)
	}
	if out.Delay != time.Minute || !i.Due.IsZero() {
		t.Errorf("delay %v, due %v", out.Delay, i.Due)
	}
	var permanent *saga.PermanentError
	if _, err := tn.Compose(saga.Answer, paid{}); !errors.As(err, &permanent) {
		t.Errorf("an answer to nobody: %v", err)
	}
}

// TestFailedStepLeavesTheLastGoodState includes a state so large that it is not decoded before every step.
func TestFailedStepLeavesTheLastGoodState(t *testing.T) {
	t.Parallel()
	for _, notes := range []int{0, 500} {
		fail := false
		d := acting(func(s *order, ctx *saga.Context) error {
			if ctx.IsNew() {
				s.Notes = map[string]string{}
				for i := range notes {
					s.Notes[fmt.Sprintf("note %d", i)] = "………"
				}
			}
			s.Seen++
			if s.Notes != nil {
				s.Notes["last"] = fmt.Sprint(s.Seen)
			}
			ctx.Timeout(time.Hour, overdue{}, saga.Named("n"))
			if fail {
				ctx.Complete()
				return errors.New("boom")
			}
			return nil
		})
		s := open(t, d, fresh())
		for n := range 40 {
			good := instanceOrNone(s)
			fail = n%3 == 2
			out := step(t, s, d, deliver(place{Order: "7"}))
			if fail != (out.Err != nil) {
				t.Fatalf("step %d: %v", n, out.Err)
			}
			if fail && instanceOrNone(s) != good {
				t.Fatalf("step %d: a failed step changed\n%s\nto\n%s", n, good, instanceOrNone(s))
			}
		}
		if got := string(instance(t, s).State); !strings.Contains(got, `"Seen":27`) || s.Completed() {
			t.Errorf("%d notes: %.80s", notes, got)
		}
	}
}

func instanceOrNone(s *saga.Session) string {
	i, err := s.Instance()
	return fmt.Sprintf("%s %+v %v", i.State, i.Pending, err)
}

// TestSecondAttemptGetsAFreshMessage: the first handler may have changed memory that the message points to.
func TestSecondAttemptGetsAFreshMessage(t *testing.T) {
	t.Parallel()
	attempts := 0
	d := saga.Define("s", saga.Options{}, saga.StartedBy(func(m note) string { return "7" },
		func(_ *order, _ *saga.Context, m note) error {
			attempts++
			if m.Map["k"] != "v" {
				return saga.Permanent(fmt.Errorf("attempt %d: %v", attempts, m.Map))
			}
			m.Map["k"] = "changed"
			if attempts == 1 {
				return errors.New("again")
			}
			return nil
		}))
	in := deliver(note{Map: map[string]string{"k": "v"}})
	call, err := d.Prepare(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, d, fresh())
	s.Step(context.Background(), turn(in), call)
	if out := s.Step(context.Background(), turn(in), call); out.Err != nil {
		t.Error(out.Err)
	}
}

func TestTimeoutsOfOneStep(t *testing.T) {
	t.Parallel()
	s, out := act(t, func(_ *order, ctx *saga.Context) error {
		ctx.Timeout(time.Hour, overdue{}, saga.Named("a"))
		ctx.Timeout(2*time.Hour, overdue{}, saga.Named("a")) // moves: the first was never sent
		ctx.Timeout(time.Hour, overdue{}, saga.Named("b"))
		if !ctx.CancelTimeout("b") || ctx.CancelTimeout("b") || ctx.CancelTimeout("") {
			t.Error("cancel does not tell whether there was one")
		}
		ctx.TimeoutAt(noon.Add(-time.Hour), overdue{})
		ctx.Timeout(-1, overdue{})
		if n := len(ctx.Timeouts()); n != 3 {
			t.Errorf("%d timeouts listed", n)
		}
		return nil
	})
	if out.Err != nil || len(out.Out) != 3 || len(out.Cancelled) != 0 {
		t.Fatalf("%+v", out)
	}
	for n, want := range []time.Time{noon.Add(2 * time.Hour), noon, noon} {
		o, p := out.Out[n].Info, instance(t, s).Pending[n]
		if !o.Due.Equal(want) || o.Intent != saga.Timer || o.Instance != numbered(50) || o.ID != p.ID ||
			!p.Due.Equal(want) {
			t.Errorf("timeout %d: %+v, pending %+v", n, o, p)
		}
	}
}

// TestFiringTimeoutIsGoneForItsHandler: the handler may set a timeout of the same name; nothing is cancelled.
func TestFiringTimeoutIsGoneForItsHandler(t *testing.T) {
	t.Parallel()
	fail := true
	d := saga.Define("order", saga.Options{}, start((*order).place),
		saga.OnTimeout(func(_ *order, ctx *saga.Context, _ overdue) error {
			if len(ctx.Timeouts()) != 0 || ctx.CancelTimeout("n") {
				return saga.Permanent(errors.New("the firing timeout is still listed"))
			}
			ctx.Timeout(time.Hour, overdue{}, saga.Named("n"))
			if fail {
				return io.EOF
			}
			return nil
		}))
	i := saga.Instance{ID: numbered(50), Key: "7", StateVersion: 1, State: []byte(`{}`),
		Pending: []saga.Pending{{Name: "n", Kind: "order.overdue", Due: noon, ID: numbered(8)}}}
	timer := func(n uint64) saga.Delivery {
		return deliver(overdue{}, func(i *saga.Info) {
			i.Intent, i.Instance, i.ID = saga.Timer, numbered(50),
				numbered(n)
		})
	}
	s := open(t, d, i)
	if out := step(t, s, d, timer(8)); !errors.Is(out.Err, io.EOF) || s.Changed() {
		t.Fatalf("a failed timeout changed something: %+v", out)
	}
	fail = false
	if out := step(t, s, d, timer(8)); out.Err != nil || len(out.Out) != 1 || len(out.Cancelled) != 0 {
		t.Fatalf("%+v", out)
	}
	if p := instance(t, s).Pending; len(p) != 1 || p[0].ID == numbered(8) || !s.Changed() {
		t.Errorf("pending %+v", p)
	}
	if out := step(t, s, d, timer(8)); out.Discard == "" {
		t.Errorf("it fired twice: %+v", out)
	}
}

// keeping decodes itself, and keeps the bytes, which encoding/json forbids.
type keeping struct{ text []byte }

func (k keeping) MarshalJSON() ([]byte, error)  { return json.Marshal(len(k.text)) }
func (k *keeping) UnmarshalJSON(b []byte) error { k.text = b; return nil }

// The outcome of the first step on a stored state lists the fields that the type does not have, even if the step fails.
func TestFieldsThatTheStateDoesNotHave(t *testing.T) {
	t.Parallel()
	type line struct{ Price int }
	type state struct {
		N     int
		Lines []line
		Kept  *keeping
	}
	d := saga.Define("order", saga.Options{StateVersion: 2}, start(func(*state, *saga.Context, place) error {
		return io.EOF
	}), saga.Upcast(1, func(state) (state, error) { return state{}, nil }))
	for _, c := range []struct {
		version      int
		stored, want string
	}{
		{2, `{"N":1,"Lines":[{"Price":2}]}`, "[]"},
		{2, `{"n":1,"LINES":null,"Kept":"x"}`, "[]"},
		{2, `{"a":1,"N":"x"} `, "state cannot be read"},
		{2, ` {"Total":1,"Lines":[{"Amount":2},{"Total":2,"Price":3}],"Z\"":0} `, `[Total Amount Z"]`},
		{2, `{"N":1} x`, "state cannot be read"},
		{1, `{"Total":1}`, "[]"},
	} {
		s, err := d.Open(saga.Instance{ID: numbered(50), Key: "7", StateVersion: c.version, State: []byte(c.stored)})
		got := fmt.Sprint(err)
		if err == nil {
			first, second := step(t, s, d, deliver(place{Order: "7"})), step(t, s, d, deliver(place{Order: "7"}))
			got = fmt.Sprint(first.Unknown)
			if len(second.Unknown) > 0 {
				t.Errorf("%s: again in the second step", c.stored)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.stored, got, c.want)
		}
	}
}

// Two states share no bytes, even if one keeps the bytes that were passed to its UnmarshalJSON.
func TestDecodersShareNoBytes(t *testing.T) {
	t.Parallel()
	type state struct{ Kept *keeping }
	var kept [][]byte
	d := saga.Define("order", saga.Options{}, start(func(s *state, _ *saga.Context, _ place) error {
		kept = append(kept, s.Kept.text)
		return nil
	}))
	for _, text := range []string{`"first"`, `"other"`} {
		s := open(t, d, saga.Instance{ID: numbered(50), Key: "7", StateVersion: 1,
			State: []byte(`{"Kept":` + text + `}`)})
		step(t, s, d, deliver(place{Order: "7"}))
	}
	if string(kept[0]) != `"first"` {
		t.Errorf("the first state has become %s", kept[0])
	}
}

// TestUpcastIsStoredWithAGoodStepOnly: until then the previous release can read the state.
func TestUpcastIsStoredWithAGoodStepOnly(t *testing.T) {
	t.Parallel()
	var says error
	d := saga.Define("order", saga.Options{StateVersion: 2}, saga.Upcast(1, up),
		start(func(*order, *saga.Context, place) error { return says }), saga.OnTimeout((*order).overdue))
	cancelled := deliver(overdue{}, func(i *saga.Info) { i.Intent, i.Instance = saga.Timer, numbered(50) })
	for _, c := range []struct {
		name    string
		in      saga.Delivery
		says    error
		changed bool
	}{
		{"it fails", deliver(place{Order: "7"}), io.EOF, false},
		{"it discards", deliver(place{Order: "7"}), saga.Discard("late"), false},
		{"its timeout was cancelled", cancelled, nil, false},
		{"it succeeds", deliver(place{Order: "7"}), nil, true},
	} {
		s := open(t, d, saga.Instance{ID: numbered(50), Key: "7", StateVersion: 1, State: []byte(`{}`)})
		says = c.says
		if out := step(t, s, d, c.in); s.Changed() != c.changed {
			t.Errorf("%s: the instance has changed: %t, want %t; %+v", c.name, s.Changed(), c.changed, out)
		}
	}
}

func TestContextPanicsAfterTheHandlerReturned(t *testing.T) {
	t.Parallel()
	var kept *saga.Context
	_, out := act(t, func(_ *order, ctx *saga.Context) error { kept = ctx; return nil })
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	for name, late := range map[string]func(){
		"Send": func() { kept.Send(paid{}) }, "Complete": func() { kept.Complete() }, "Info": func() { kept.Info() },
		"Timeout": func() { kept.Timeout(1, overdue{}) }, "CancelTimeout": func() { kept.CancelTimeout("x") },
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, "Context."+name+
					" was called after the handler returned") {
					t.Errorf("%s: %q", name, v)
				}
			}()
			late()
		}()
	}
	if kept.Err() != nil || kept.Value("x") != nil {
		t.Error("as a context.Context it is not usable any more")
	}
}

func TestIfMissingDoHasNoInstance(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*saga.Context){
		"Complete":          func(c *saga.Context) { c.Complete() },
		"Timeout":           func(c *saga.Context) { c.Timeout(1, overdue{}) },
		"CancelTimeout":     func(c *saga.Context) { c.CancelTimeout("x") },
		"ReplyToOriginator": func(c *saga.Context) { c.ReplyToOriginator(paid{}) },
	} {
		d := saga.Define("order", saga.Options{}, start((*order).place), saga.OnTimeout((*order).overdue),
			saga.Handles(func(m charged) string { return m.Order }, (*order).charged,
				saga.IfMissingDo(func(ctx *saga.Context, _ charged) error { f(ctx); return nil })))
		in := deliver(charged{Order: "7"})
		call, err := d.Prepare(in, nil)
		if err != nil || call.MayStart() {
			t.Fatal(err)
		}
		out, ok := call.StepMissing(context.Background(), turn(in))
		if !ok || out.Err == nil || !strings.Contains(out.Err.Error(), name+" in IfMissingDo") {
			t.Errorf("%s: %v, %v", name, out.Err, ok)
		}
	}
}

func TestMissingAnswersTheInstanceThatAsked(t *testing.T) {
	t.Parallel()
	d := saga.Define("order", saga.Options{Missing: saga.MissingRetry}, start((*order).place),
		saga.Handles(func(m charged) string { return m.Order }, (*order).charged,
			saga.IfMissingDo(func(ctx *saga.Context, m charged) error {
				ctx.Reply(paid{})
				ctx.Send(paid{})
				return nil
			})))
	in := deliver(charged{Order: "7"}, func(i *saga.Info) { i.Origin = numbered(60) })
	call, err := d.Prepare(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := call.StepMissing(context.Background(), turn(in))
	if len(out.Out) != 2 || out.Out[0].Info.Instance != numbered(60) || !out.Out[0].Info.Origin.IsZero() ||
		!out.Out[1].Info.Origin.IsZero() {
		t.Errorf("%+v", out)
	}
	if call.Missing() != saga.MissingRetry {
		t.Error(call.Missing())
	}
}

func TestReplyToOriginatorGoesToWhoStarted(t *testing.T) {
	t.Parallel()
	d := saga.Define("order", saga.Options{}, start((*order).place),
		saga.Handles(func(m charged) string { return m.Order }, func(_ *order, ctx *saga.Context, _ charged) error {
			ctx.ReplyToOriginator(paid{}, saga.WithHeader("a", "b"))
			return nil
		}))
	s := open(t, d, fresh())
	step(t, s, d, deliver(place{Order: "7"}, func(i *saga.Info) { i.Origin, i.From = numbered(60), "shop" }))
	out := step(t, s, d, deliver(charged{Order: "7"}, func(i *saga.Info) { i.ID = numbered(9) }))
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	o := out.Out[0]
	if o.To != "shop" || o.Info.Instance != numbered(60) || o.Info.CorrelationID != numbered(7) ||
		!o.Info.Origin.IsZero() || o.Info.RelatedTo != numbered(9) || o.Info.Header("a") != "b" {
		t.Errorf("%+v", o)
	}
}

func TestPrepareRefusesForGood(t *testing.T) {
	t.Parallel()
	d := saga.Define("order", saga.Options{}, saga.StartedBy(func(m place) string {
		if m.Act == "panic" {
			panic("no key")
		}
		return m.Order
	}, (*order).place), saga.OnReply((*order).stocked), saga.OnTimeout((*order).overdue))
	none := func(*saga.Info) {}
	tests := map[string]struct {
		m      saga.Message
		change func(*saga.Info)
	}{
		"it is empty":               {place{}, none},
		"513 bytes, want at most":   {place{Order: strings.Repeat("k", 513)}, none},
		"without NUL":               {place{Order: "a\x00"}, none},
		"panic: no key":             {place{Act: "panic"}, none},
		"carries no instance id":    {stocked{}, none},
		"it as a timeout only":      {overdue{}, none},
		"has no OnTimeout for it":   {stocked{}, func(i *saga.Info) { i.Intent, i.Instance = saga.Timer, numbered(1) }},
		"order carries no instance": {overdue{}, func(i *saga.Info) { i.Intent = saga.Timer }},
		"as an answer, and":         {stocked{}, func(i *saga.Info) { i.Intent, i.Instance = saga.Event, numbered(1) }},
		"does not handle it":        {paid{}, none},
		"decode order.place for":    {saga.Raw{Name: "order.place", Body: []byte("{")}, none},
	}
	for want, test := range tests {
		_, err := d.Prepare(deliver(test.m, test.change), nil)
		var permanent *saga.PermanentError
		if !errors.As(err, &permanent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want %q", test.m, err, want)
		}
	}
	call, err := d.Prepare(deliver(place{}, func(i *saga.Info) { i.Instance = numbered(1) }), nil)
	if err != nil || call.MayStart() || call.Key() != "" || call.Instance() != numbered(1) {
		t.Errorf("addressed by instance: %+v, %v", call, err)
	}
}

// errType ends the error about a field whose stored value has the wrong type.
var errType = errors.New("if the type of the field has changed, raise StateVersion to 4 and give an Upcast from 3")

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	d := saga.Define("order", saga.Options{StateVersion: 3}, start((*order).place),
		saga.Upcast(1, func(order) (order, error) { panic("v1") }),
		saga.Upcast(2, func(order) (order, error) { return order{}, io.EOF }))
	tests := map[string]struct {
		i    saga.Instance
		want error
	}{
		"newer":          {saga.Instance{StateVersion: 4, State: []byte("{")}, saga.ErrNewerState},
		"unreadable":     {saga.Instance{StateVersion: 3, State: []byte("{")}, saga.ErrState},
		"upcast fails":   {saga.Instance{StateVersion: 2, State: []byte("{}")}, io.EOF},
		"upcast panics":  {saga.Instance{StateVersion: 0, State: []byte("{}")}, saga.ErrState},
		"another type":   {saga.Instance{StateVersion: 3, State: []byte(`{"Seen":"x"}`)}, errType},
		"of another one": {saga.Instance{Saga: "other", StateVersion: 3, State: []byte("{}")}, nil},
	}
	for name, test := range tests {
		test.i.ID, test.i.Key = numbered(1), "7"
		_, err := d.Open(test.i)
		if test.want == errType {
			if !strings.HasSuffix(err.Error(), test.want.Error()) {
				t.Errorf("%s: %v, want it to end with %v", name, err, test.want)
			}
			test.want = saga.ErrState
		}
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), "order/7") {
			t.Errorf("%s: %v", name, err)
		}
		var permanent *saga.PermanentError
		if errors.As(err, &permanent) != errors.Is(err, saga.ErrState) {
			t.Errorf("%s: permanent or not? %v", name, err)
		}
	}
	if _, err := d.Open(saga.Instance{New: true}); err == nil {
		t.Error("opened an instance without an id")
	}
}

func TestSessionRefusesTheRuntimesMistakes(t *testing.T) {
	t.Parallel()
	d := orders(saga.Options{})
	s := open(t, d, fresh())
	if out := step(t, s, d, deliver(charged{Order: "7"})); out.Err == nil {
		t.Error("a message that does not start stepped on nothing")
	}
	if _, err := s.Instance(); err == nil {
		t.Error("an instance that never began")
	}
	step(t, s, d, deliver(place{Order: "7"}))
	step(t, s, d, deliver(charged{Order: "7"}))
	if out := step(t, s, d, deliver(place{Order: "7"})); out.Err == nil {
		t.Error("stepped after Complete")
	}
	if out := step(t, s, orders(saga.Options{}), deliver(place{Order: "7"})); out.Err == nil {
		t.Error("stepped a call of another definition")
	}
}

func TestLargeStateFailsTheStep(t *testing.T) {
	t.Parallel()
	s, out := act(t, func(o *order, _ *saga.Context) error {
		o.Notes = map[string]string{"n": strings.Repeat("x", 1<<20)}
		return nil
	})
	if !errors.Is(out.Err, saga.ErrTooLarge) || s.Live() {
		t.Errorf("%v", out.Err)
	}
	s, out = act(t, func(o *order, _ *saga.Context) error { o.Notes = map[string]string{"n": bad}; return nil })
	if out.Err == nil || s.Live() {
		t.Errorf("%v", out.Err)
	}
}

// TestMiddlewareIsPartOfTheStep: its error decides the outcome, and the handler gets its context.
func TestMiddlewareIsPartOfTheStep(t *testing.T) {
	t.Parallel()
	type name struct{}
	d := acting(func(_ *order, ctx *saga.Context) error {
		ctx.Send(paid{Order: fmt.Sprint(ctx.Value(name{}))})
		return nil
	})
	for _, refuse := range []error{nil, io.EOF} {
		in := deliver(place{Order: "7"})
		call, err := d.Prepare(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, tn := open(t, d, fresh()), turn(in)
		tn.Around = func(ctx context.Context, handler func(context.Context) error) error {
			return errors.Join(handler(context.WithValue(ctx, name{}, "tenant")), refuse)
		}
		out := s.Step(context.Background(), tn, call)
		if refuse != nil {
			if !errors.Is(out.Err, refuse) || s.Live() || len(out.Out) > 0 {
				t.Errorf("the middleware refused, and the step is %+v", out)
			}
		} else if out.Err != nil || string(out.Out[0].Body) != `{"Order":"tenant"}` {
			t.Errorf("%+v", out)
		}
	}
}

// counted is an error that counts how often its text is read.
type counted struct{ reads *int }

func (c counted) Error() string { *c.reads++; return "counted" }

func TestExaminedReadsTheTextOnce(t *testing.T) {
	t.Parallel()
	reads := 0
	if err := saga.Examined(counted{&reads}); err.Error() != "counted" || !errors.As(err, new(counted)) ||
		saga.Examined(err) != err {
		t.Fatalf("it became %v", err)
	}
	if reads != 1 {
		t.Errorf("its text was read %d times", reads)
	}
}
