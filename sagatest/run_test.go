package sagatest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunTellsWhatASagaDid(t *testing.T) {
	t.Parallel()
	run := sagatest.New(t, parcels())
	must(t, run.DeliverFrom("shop", pickup{Parcel: "7", Days: 2}))
	if got := run.Sent(); len(got) != 1 || got[0] != (askPrice{Days: 2}) {
		t.Errorf("sent %#v", got)
	}
	must(t, run.Reply(askPrice{Days: 2}, priced{Cents: 450}))
	if got := sagatest.State[parcel](run, "7"); got != (parcel{Days: 2, Cents: 450}) {
		t.Errorf("state %+v", got)
	}
	if p := run.Pending("7"); len(p) != 1 || p[0].Name != "lost" || !p[0].Due.Equal(run.Now().Add(48*time.Hour)) {
		t.Errorf("pending %+v", p)
	}
	must(t, run.Advance(48*time.Hour))
	if got := run.SentAs(); len(got) != 1 || got[0].To != "shop" || got[0].Info.Intent != saga.Answer {
		t.Errorf("sent %+v", got)
	}
	if run.Live("7") || run.Pending("7") != nil {
		t.Error("still live")
	}
}

func TestMessagesWithoutAnInstance(t *testing.T) {
	t.Parallel()
	run := sagatest.New(t, parcels())
	must(t, run.Deliver(scanned{Parcel: "7"}))
	if got := run.Discarded(); !slices.Equal(got, []string{"parcel.scanned: no instance"}) {
		t.Errorf("discarded %q", got)
	}
	for _, m := range []saga.Message{delivered{Parcel: "7"}, returned{Parcel: "7"}} {
		if err := run.Deliver(m); !errors.Is(err, sagatest.ErrMissing) {
			t.Errorf("%s: %v", m.Kind(), err)
		}
	}
}

func TestDelayedDeliveryWaitsForAdvance(t *testing.T) {
	t.Parallel()
	run := sagatest.New(t, parcels())
	must(t, run.Deliver(pickup{Parcel: "7", Days: 9}, saga.Delay(time.Hour)))
	must(t, run.Advance(time.Hour-1))
	if run.Live("7") {
		t.Fatal("early")
	}
	must(t, run.Advance(1))
	if !run.Live("7") {
		t.Fatal("late")
	}
}

type tick struct{}

func (tick) Kind() string { return "tick" }

type begin struct{}

func (begin) Kind() string { return "begin" }

type clock struct{ Ticks, Failed int }

// TestFailedTimeoutFiresAgain: a step that fails leaves its timeout pending, as for a retry on the bus.
func TestFailedTimeoutFiresAgain(t *testing.T) {
	t.Parallel()
	fail := true
	run := sagatest.New(t, saga.Define("clock", saga.Options{},
		saga.StartedBy(func(begin) string { return "1" }, func(_ *clock, ctx *saga.Context, _ begin) error {
			ctx.Timeout(time.Minute, tick{})
			return nil
		}),
		saga.OnTimeout(func(s *clock, ctx *saga.Context, _ tick) error {
			s.Ticks++
			if fail {
				return errors.New("not now")
			}
			if s.Ticks < 3 {
				ctx.Timeout(time.Minute, tick{})
			}
			s.Failed = ctx.Info().Attempt - 1
			return nil
		})))
	must(t, run.Deliver(begin{}))
	if err := run.Advance(time.Minute); err == nil || !strings.Contains(err.Error(), "timeout tick: not now") {
		t.Fatalf("error %v", err)
	}
	fail = false
	must(t, run.Advance(0))
	if got := sagatest.State[clock](run, "1"); got != (clock{Ticks: 1, Failed: 1}) {
		t.Fatalf("after the retry %+v", got)
	}
	must(t, run.Advance(time.Hour)) // timeouts that timeouts set fire too
	if got := sagatest.State[clock](run, "1"); got.Ticks != 3 || run.Pending("1") != nil {
		t.Fatalf("after an hour %+v, pending %v", got, run.Pending("1"))
	}
}

func TestTranscriptTellsWhatIsWrongWithALine(t *testing.T) {
	t.Parallel()
	sagatest.Transcript(t, parcels(), "testdata/wrong/*.txt")
}

// If a test used the wrong type, it would get a zero state, and pass.
func TestStateOfAnotherTypeFailsTheTest(t *testing.T) {
	t.Parallel()
	defer func() {
		const want = "sagatest: state of parcel/1: it is a sagatest_test.parcel, not a sagatest_test.pickup"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}()
	run := sagatest.New(exampleT{t}, parcels())
	sagatest.State[pickup](run, "1")
}

// heard is a test that keeps its failure text, and ends by a panic.
type heard struct {
	testing.TB
	text string
}

func (h *heard) Helper()                        {}
func (h *heard) Logf(format string, a ...any)   { h.text += fmt.Sprintf(format, a...) }
func (h *heard) Fatal(args ...any)              { panic(fmt.Sprint(args...)) }
func (h *heard) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

type weighed struct {
	Parcel string
	grams  int
}

func (weighed) Kind() string { return "parcel.weighed" }

// A message that would lose a field fails the test; a state that would lose a field is logged.
func TestMessageThatLosesAField(t *testing.T) {
	t.Parallel()
	h := &heard{TB: t}
	run := sagatest.New(h, parcels())
	run.Given("7", 2, `{"Days":2,"Grams":3}`)
	must(t, run.Deliver(scanned{Parcel: "7"}))
	want := `the state of parcel/7 has the fields ["Grams"], which sagatest_test.parcel does not have`
	if !strings.Contains(h.text, want) {
		t.Errorf("%q is in the log, want %s", h.text, want)
	}
	defer func() {
		want := "saga parcel: message sagatest_test.weighed: field grams is unexported, so it is not sent: export it"
		if got := recover(); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}()
	sagatest.New(h, saga.Define("parcel", saga.Options{}, saga.StartedBy(
		func(m weighed) string { return m.Parcel + fmt.Sprint(m.grams) },
		func(*parcel, *saga.Context, weighed) error { return nil })))
}
