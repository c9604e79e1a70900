package remote

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/saga"
)

var testNames = names{kind: "header", id: "run", attempt: "attempt", manifest: "manifest", due: "due", token: "token"}

func TestNamesReadWhatTheyWrite(t *testing.T) {
	t.Parallel()
	fire := saga.Firing{Run: saga.ID{7}, Attempt: 1<<31 - 1, Manifest: "reports", Due: time.Unix(1e9, 1).UTC()}
	kept := map[string]string{}
	testNames.write(func(name, value string) { kept[name] = value }, &fire, "secret")
	got, err := testNames.read(func(name string) string { return kept[name] })
	want := Run{ID: fire.Run, Attempt: fire.Attempt, Manifest: fire.Manifest, Due: fire.Due,
		Token: "secret"}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestNamesRefuseWhatNamesNoRun(t *testing.T) {
	t.Parallel()
	for wrong, name := range map[string]string{
		"no UUID": "run", "00000000-0000-0000-0000-000000000000": "run",
		"0": "attempt", "-1": "attempt", "2147483648": "attempt", "99999999999999999999": "attempt", "1.5": "attempt",
		"": "manifest", "yesterday": "due",
	} {
		kept := map[string]string{"run": saga.ID{7}.String(), "attempt": "1", "manifest": "reports",
			"due": "2026-01-01T00:00:00Z"}
		kept[name] = wrong
		got, err := testNames.read(func(name string) string { return kept[name] })
		if err == nil || !strings.Contains(err.Error(), "header "+name+":") {
			t.Errorf("%s %q: %+v, %v", name, wrong, got, err)
		}
	}
}

func TestFailureIsWhatReportOfHasWritten(t *testing.T) {
	t.Parallel()
	if failure, ok := reportOf(nil).failure(); failure != nil || !ok {
		t.Errorf("%v, %t", failure, ok)
	}
	failure, ok := reportOf(errors.New("no paper")).failure()
	permanent := (*saga.PermanentError)(nil)
	if !ok || failure.Error() != "no paper" || errors.As(failure, &permanent) {
		t.Errorf("%v, %t", failure, ok)
	}
	if failure, ok := reportOf(saga.Permanent(errors.New("no"))).failure(); !ok || !errors.As(failure, &permanent) {
		t.Errorf("%v, %t", failure, ok)
	}
	for _, none := range []report{{}, {Outcome: "won"}, {Outcome: "succeeded", Error: "no"}} {
		if failure, ok := none.failure(); ok {
			t.Errorf("%+v is %v", none, failure)
		}
	}
}

// Over HTTP a report must have only known names; over a broker it may come from a program of a different version.
func TestOnlyAStrictReaderRefusesOtherNames(t *testing.T) {
	t.Parallel()
	const more = `{"outcome":"failed","error":"no","at":1}`
	var r report
	if err := strict(strings.NewReader(more), &r); err == nil {
		t.Errorf("%+v", r)
	}
	if err := lenient(strings.NewReader(more), &r); err != nil || r.Outcome != "failed" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, text := range []string{"", "done", "[1]", `{"outcome":"failed"}{}`, `{"outcome":"failed"}]`} {
		if strict(strings.NewReader(text), &r) == nil || lenient(strings.NewReader(text), &r) == nil {
			t.Errorf("%q was read", text)
		}
	}
}

var errAway, errEnd, errNever = errors.New("it is away"), errors.New("the end"), errors.New("never")

// Insist continues until the report is accepted. When it gives up, its error includes the publisher's error.
func TestInsistKeepsTheLastError(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		answers []error // and then the last one again; the context ends before it
		ended   bool
		want    []error
	}{
		"taken at last":            {[]error{errAway, errAway, nil}, false, nil},
		"taken after the end":      {[]error{nil}, true, nil},
		"permanent":                {[]error{errAway, backoff.Permanent(errNever)}, false, []error{errNever}},
		"permanent after the end":  {[]error{errAway, backoff.Permanent(errNever)}, true, []error{errNever}},
		"away at the end":          {[]error{errAway}, true, []error{errEnd, errAway}},
		"away at the end, at last": {[]error{errNever, errAway}, true, []error{errEnd, errAway}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			calls := 0
			err := insist(ctx, quiet, saga.ID{7}, 1, func() error {
				n := min(calls, len(c.answers)-1)
				calls++
				if c.ended && n == len(c.answers)-1 {
					end(errEnd)
				}
				return c.answers[n]
			})
			if (err == nil) != (c.want == nil) || calls != len(c.answers) {
				t.Errorf("%s: %v after %d calls", name, err, calls)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			}
		})
	}
}
