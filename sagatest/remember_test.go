package sagatest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

// visits is a saga that remembers its instances for a day. Each kind treats a late message differently.
func visits() *saga.Definition {
	at := func(m pickup) string { return m.Parcel }
	return saga.Define("visit", saga.Options{Remember: 24 * time.Hour},
		saga.StartedBy(at, func(s *parcel, ctx *saga.Context, m pickup) error {
			s.Days += m.Days
			ctx.Timeout(time.Hour, lost{})
			return nil
		}),
		saga.Handles(func(m delivered) string { return m.Parcel },
			func(_ *parcel, ctx *saga.Context, _ delivered) error { ctx.Complete(); return nil },
			saga.IfMissing(saga.MissingDeadLetter)),
		saga.Handles(func(m returned) string { return m.Parcel },
			func(*parcel, *saga.Context, returned) error { return nil }, saga.IfMissing(saga.MissingRetry)),
		saga.Handles(func(m scanned) string { return m.Parcel },
			func(*parcel, *saga.Context, scanned) error { return nil },
			saga.IfMissingDo(func(ctx *saga.Context, m scanned) error {
				ctx.Send(askPrice{Days: len(m.Parcel)})
				return nil
			})),
		saga.OnTimeout(func(*parcel, *saga.Context, lost) error { return nil }))
}

func TestCompletedInstanceIsRemembered(t *testing.T) {
	t.Parallel()
	run := sagatest.New(t, visits())
	must(t, run.Deliver(pickup{Parcel: "7", Days: 2}))
	must(t, run.Deliver(delivered{Parcel: "7"}))
	if run.Live("7") || run.Pending("7") != nil {
		t.Error("it lives")
	}
	if got := sagatest.State[parcel](run, "7"); got.Days != 2 {
		t.Errorf("the last state is %+v", got)
	}

	must(t, run.Deliver(pickup{Parcel: "7", Days: 5}))
	must(t, run.Advance(time.Hour)) // the visit's own timeout was removed
	want := []string{"parcel.pickup: instance has completed", "parcel.lost: timeout was cancelled or replaced"}
	if got := run.Discarded(); !slices.Equal(got, want) {
		t.Errorf("discarded %q", got)
	}
	for _, m := range []saga.Message{delivered{Parcel: "7"}, returned{Parcel: "7"}} {
		if err := run.Deliver(m); !errors.Is(err, sagatest.ErrMissing) {
			t.Errorf("%s: %v", m.Kind(), err)
		}
	}
	run.Sent()
	must(t, run.Deliver(scanned{Parcel: "7"}))
	if got := run.Sent(); len(got) != 1 || got[0] != (askPrice{Days: 1}) {
		t.Errorf("IfMissingDo sent %v", got)
	}

	must(t, run.Advance(23*time.Hour))
	if _, ok := run.Instance("7"); ok {
		t.Error("it is not forgotten")
	}
	must(t, run.Deliver(pickup{Parcel: "7", Days: 5}))
	if got := sagatest.State[parcel](run, "7"); got.Days != 5 || !run.Live("7") {
		t.Errorf("its next life has the state %+v", got)
	}
}

// A remembered instance needs no state that this program can read.
func TestRememberedInstanceOfAnotherStateVersion(t *testing.T) {
	t.Parallel()
	d := visits()
	in := saga.Instance{ID: saga.ID{7}, Saga: "visit", Key: "7", StateVersion: 9, State: []byte(`[]`),
		Pending: []saga.Pending{{Kind: "edda.forget", ID: saga.ID{8}, Due: time.Now()}}}
	if in.RememberedUntil().IsZero() {
		t.Fatal("it lives")
	}
	s, err := d.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	if s.Changed() || s.Completed() {
		t.Error("it has changed")
	}
}

func TestRememberIsChecked(t *testing.T) {
	t.Parallel()
	start := saga.StartedBy(func(m pickup) string { return m.Parcel },
		func(*parcel, *saga.Context, pickup) error { return nil })
	for _, d := range []time.Duration{-1, 11 * 365 * 24 * time.Hour} {
		if err := saga.Define("visit", saga.Options{Remember: d}, start).Err(); err == nil ||
			!strings.Contains(err.Error(), "want 0 to 10 years") {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// Every saga can remove an instance that an earlier version of the program has remembered.
func TestEverySagaForgets(t *testing.T) {
	t.Parallel()
	d := parcels()
	s, err := d.Open(saga.Instance{ID: saga.ID{7}, Saga: d.Name(), Key: "7", StateVersion: 9, State: []byte(`[]`),
		Pending: []saga.Pending{{Kind: "edda.forget", ID: saga.ID{8}, Due: time.Now()}}})
	if err != nil {
		t.Fatal(err)
	}
	in := saga.Delivery{Info: saga.Info{ID: saga.ID{8}, Kind: "edda.forget", Intent: saga.Timer, Instance: saga.ID{7}}}
	call, err := d.Prepare(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := s.Step(t.Context(), &saga.Runtime{In: in}, call)
	if out.Err != nil || out.Discard != "" || !s.Completed() {
		t.Errorf("%+v, completed %t", out, s.Completed())
	}
}
