package recoverability_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

var errClosed = errors.New("closed")

// says is a policy that its reason identifies.
func says(reason string) recoverability.Policy {
	return recoverability.Always(recoverability.DiscardBecause(reason))
}

func TestChooseAsksTheFirstRuleThatMatches(t *testing.T) {
	p, err := recoverability.Choose(says("rest"),
		recoverability.Unrecoverable(errClosed),
		recoverability.OnError(errSoldOut, says("sold out")),
		recoverability.OnErrorAs[*fs.PathError](says("path")),
		recoverability.OnKind("order.charge", says("charge")),
		recoverability.When(func(f recoverability.Failure) bool { return f.Info.Attempt > 5 }, says("many")),
	)
	if err != nil {
		t.Fatal(err)
	}
	path := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	tests := []struct {
		kind    string
		attempt int
		err     error
		want    string
	}{
		{"a", 1, errBoom, "rest"},
		{"a", 6, errBoom, "many"},
		{"order.charge", 1, errBoom, "charge"},
		{"order.charge", 6, errSoldOut, "sold out"},
		{"order.charge", 1, fmt.Errorf("x: %w", path), "path"},
		{"a", 1, errors.Join(path, errSoldOut), "sold out"},
		{"a", 1, saga.Permanent(fmt.Errorf("x: %w", errSoldOut)), "sold out"},
	}
	for _, test := range tests {
		v := recoverability.Resolve(p, recoverability.Failure{Info: saga.Info{Kind: test.kind, Attempt: test.attempt},
			Err: test.err})
		if v.Action != recoverability.ActionDiscard || v.Reason != test.want {
			t.Errorf("%s, attempt %d, %v: %+v, want %q", test.kind, test.attempt, test.err, v, test.want)
		}
	}
	if v := recoverability.Resolve(p, failure(1,
		fmt.Errorf("x: %w", errClosed))); v.Action != recoverability.ActionDeadLetter || v.Err != nil {
		t.Errorf("unrecoverable: %+v", v)
	}
}

// Choose and its rules accept numbers, functions and policies.
func TestChooseTakesWhatDecides(t *testing.T) {
	_, err := recoverability.Choose(recoverability.Default,
		recoverability.OnError(errClosed, recoverability.Retries{Immediate: 1}),
		recoverability.OnKind("a", recoverability.Default),
		recoverability.OnErrorAs[*fs.PathError](recoverability.DefaultRetries()),
	)
	if err != nil {
		t.Error(err)
	}
	p, err := recoverability.Choose(recoverability.Retries{Immediate: 2})
	if err != nil {
		t.Fatal(err)
	}
	if attempts, _ := story(t, p, errBoom, 9); attempts != 3 {
		t.Errorf("%d attempts, want 3", attempts)
	}
}

func TestChooseReportsEveryFault(t *testing.T) {
	var nobody recoverability.Policy
	wrapped := fmt.Errorf("more: %w", errClosed)
	tests := map[string]struct {
		rest  recoverability.Policy
		rules []recoverability.Rule
	}{
		"the rest: the policy is nil":      {nil, nil},
		"OnKind(\"a\"): the policy is nil": {says("rest"), []recoverability.Rule{recoverability.OnKind("a", nobody)}},
		"OnError(<nil>): the error is nil": {says("rest"),
			[]recoverability.Rule{recoverability.OnError(nil, says("x"))}},
		"When: the function is nil": {says("rest"), []recoverability.Rule{recoverability.When(nil, says("x"))}},
		"and no nil": {says("rest"),
			[]recoverability.Rule{recoverability.Unrecoverable(errClosed, nil)}},
		"at least one error":  {says("rest"), []recoverability.Rule{recoverability.Unrecoverable()}},
		"rule 1: it is empty": {says("rest"), []recoverability.Rule{{}}},
		"every failure is an error": {says("rest"),
			[]recoverability.Rule{recoverability.OnErrorAs[error](says("x"))}},
		"Immediate -1": {says("rest"),
			[]recoverability.Rule{recoverability.OnKind("a", recoverability.Retries{Immediate: -1})}},
		"OnKind(\"No\")": {says("rest"),
			[]recoverability.Rule{recoverability.OnKind("No", says("x"))}},
		"OnKind(\"a\"): it can never match": {says("rest"),
			[]recoverability.Rule{recoverability.OnKind("a", says("x")), recoverability.OnKind("a", says("y"))}},
		"OnError(more: closed): it can nev": {says("rest"),
			[]recoverability.Rule{recoverability.OnError(errClosed, says("x")),
				recoverability.OnError(wrapped, says("y"))}},
		"OnErrorAs[*fs.PathError]: it can": {says("rest"),
			[]recoverability.Rule{recoverability.OnErrorAs[*fs.PathError](says("x")),
				recoverability.OnErrorAs[*fs.PathError](says("y"))}},
		"OnError(open x: y): it can never": {says("rest"),
			[]recoverability.Rule{recoverability.OnErrorAs[*fs.PathError](says("x")),
				recoverability.OnError(&fs.PathError{Op: "open", Path: "x", Err: errors.New("y")}, says("y"))}},
		"OnError(closed): it can never": {says("rest"),
			[]recoverability.Rule{recoverability.Unrecoverable(errBoom, errClosed),
				recoverability.OnError(errClosed, says("y"))}},
	}
	for want, test := range tests {
		p, err := recoverability.Choose(test.rest, test.rules...)
		if err == nil || p != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	_, err := recoverability.Choose(nobody, recoverability.OnKind("", nobody))
	if err == nil || strings.Count(err.Error(), "choose:") != 2 {
		t.Errorf("not every fault at once: %v", err)
	}
	if _, err := recoverability.Choose(says("rest"), recoverability.OnError(wrapped, says("x")),
		recoverability.OnError(errClosed, says("y"))); err != nil {
		t.Errorf("the narrower error first is how it should be: %v", err)
	}
}

func TestFullJitterFillsTheWholeDelay(t *testing.T) {
	p, err := recoverability.Retries{Delayed: 1, Step: time.Minute, Jitter: recoverability.Full}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	var quarters [4]int
	for n := range 4000 {
		f := failure(1, errBoom)
		f.Info.ID = saga.ID{14: byte(n >> 8), 15: byte(n)}
		v := recoverability.Resolve(p, f)
		if v.Action != recoverability.ActionRetryIn || v.Delay <= 0 || v.Delay > time.Minute ||
			v != recoverability.Resolve(p, f) {
			t.Fatalf("%+v", v)
		}
		quarters[min(3, v.Delay*4/time.Minute)]++
	}
	for _, n := range quarters {
		if n < 800 || n > 1200 {
			t.Errorf("quarters of a minute got %v of 4000 delays", quarters)
			break
		}
	}
	if _, err := (recoverability.Retries{Jitter: 7}).Policy(); err == nil ||
		!strings.Contains(err.Error(), "Jitter 7") {
		t.Errorf("%v", err)
	}
}

func TestDecisionsForOneSideOnly(t *testing.T) {
	count := recoverability.Always(recoverability.CountAsFailure())
	if v := recoverability.Resolve(count, failure(1, errBoom)); v.Action != recoverability.ActionDeadLetter ||
		v.Err == nil {
		t.Errorf("a failure counted as a failure: %+v", v)
	}
	for _, p := range []recoverability.Policy{nil, count} {
		if v := recoverability.ResolveConflict(p,
			failure(1, errBoom)); v.Action != recoverability.ActionCountAsFailure {
			t.Errorf("conflict: %+v", v)
		}
	}
	pause := recoverability.Always(recoverability.PauseEndpoint(""))
	for _, v := range []recoverability.Verdict{recoverability.Resolve(pause, failure(1, errBoom)),
		recoverability.ResolveConflict(pause, failure(1, errBoom))} {
		if v.Action != recoverability.ActionPause || v.Reason == "" {
			t.Errorf("pause: %+v", v)
		}
	}
}

func TestCountConflictsReadsTheSeriesFromLostSaves(t *testing.T) {
	p := recoverability.CountConflicts(recoverability.Default)
	for conflicts, want := range map[int]recoverability.Action{11: recoverability.ActionRetryNow,
		12: recoverability.ActionRetryIn, 24: recoverability.ActionDeadLetter} {
		f := failure(1, errBoom)
		f.Conflicts = conflicts
		if v := recoverability.Resolve(p, f); v.Action != want {
			t.Errorf("%d conflicts: %v, want %v", conflicts, v.Action, want)
		}
	}
}

func TestWithinEndsWithAge(t *testing.T) {
	p := recoverability.Within(time.Hour, says("young"), says("old"))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, first := range map[string]time.Time{"young": now.Add(-59 * time.Minute), "old": now.Add(-time.Hour)} {
		if v := recoverability.Resolve(p, recoverability.Failure{First: first, Now: now}); v.Reason != want {
			t.Errorf("failing since %v: %+v, want %s", first, v, want)
		}
	}
	if v := recoverability.Resolve(p, recoverability.Failure{Now: now}); v.Reason != "young" {
		t.Errorf("%+v", v)
	}
}
