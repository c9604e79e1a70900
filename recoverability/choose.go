package recoverability

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/edda-go/edda/saga"
)

// Chosen is the type of policies in Choose and its rules: a Policy, a function like Default, or Retries.
type Chosen interface {
	~func(Failure) Decision | Retries
}

// Rule applies a policy to the failures that it matches. OnError, OnErrorAs, OnKind, When and Unrecoverable make one.
type Rule struct {
	name    string
	matches func(Failure) bool
	covers  func(Rule) bool // reports whether a later rule can never match
	policy  Policy
	fault   error

	errors []error      // of OnError and Unrecoverable
	as     reflect.Type // of OnErrorAs
	kind   string       // of OnKind
}

// Choose combines policies. It tries the rules in their order, and the first that matches decides; if no rule matches,
// rest decides. A rule takes precedence over saga.Permanent and saga.RetryAfter, which only Default, Retries and
// Backoff treat specially: OnError(ErrNoStock, …) also decides about saga.Permanent(ErrNoStock).
//
// Choose returns an error that lists every fault: a nil policy, Retries with numbers out of range, an invalid kind,
// and a rule that can never match because an earlier rule matches all its failures.
func Choose[P Chosen](rest P, rules ...Rule) (Policy, error) {
	last, err := chosen(rest)
	var faults []error
	fault := func(name string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("choose: %s: %w", name, err))
		}
	}
	fault("the rest", err)
	for n, r := range rules {
		if r.matches == nil && r.fault == nil {
			r.name, r.fault = fmt.Sprintf("rule %d", n+1),
				errors.New("it is empty: make it with OnError, OnErrorAs, OnKind, When or Unrecoverable")
		}
		fault(r.name, r.fault)
		if before := slices.IndexFunc(rules[:n], func(earlier Rule) bool {
			return earlier.covers != nil &&
				earlier.covers(r)
		}); before >= 0 {
			fault(r.name, fmt.Errorf("it can never match, because %s before it matches the same: swap them",
				rules[before].name))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	rules = slices.Clone(rules)
	return func(f Failure) Decision {
		for i := range rules {
			if rules[i].matches(f) {
				return rules[i].policy(f)
			}
		}
		return last(f)
	}, nil
}

// OnError applies p to failures whose error matches target, by errors.Is.
func OnError[P Chosen](target error, p P) Rule {
	r := newRule(fmt.Sprintf("OnError(%v)", target), p)
	if target == nil {
		r.fault = errors.Join(r.fault, errors.New("the error is nil"))
		return r
	}
	r.ofErrors(target)
	return r
}

// OnErrorAs applies p to failures if errors.As finds a T in their error: OnErrorAs[*net.OpError](patient).
func OnErrorAs[T error, P Chosen](p P) Rule {
	as := reflect.TypeFor[T]()
	r := newRule(fmt.Sprintf("OnErrorAs[%v]", as), p)
	if as == reflect.TypeFor[error]() {
		r.fault = errors.Join(r.fault, errors.New("every failure is an error: give that policy as the rest"))
		return r
	}
	has := func(err error) bool {
		var found T
		return errors.As(err, &found)
	}
	r.as = as
	r.matches = func(f Failure) bool { return has(f.Err) }
	r.covers = func(later Rule) bool {
		return later.as == as || len(later.errors) > 0 &&
			!slices.ContainsFunc(later.errors, func(e error) bool { return !has(e) })
	}
	return r
}

// OnKind applies p to failures of messages of one kind.
func OnKind[P Chosen](kind string, p P) Rule {
	r := newRule(fmt.Sprintf("OnKind(%.80q)", kind), p)
	r.fault = errors.Join(r.fault, saga.CheckName(kind))
	r.kind = kind
	r.matches = func(f Failure) bool { return f.Info.Kind == kind }
	r.covers = func(later Rule) bool { return later.kind == kind }
	return r
}

// When applies p to failures that match accepts. match must be safe for concurrent use.
func When[P Chosen](match func(Failure) bool, p P) Rule {
	r := newRule("When", p)
	if match == nil {
		r.fault = errors.Join(r.fault, errors.New("the function is nil"))
	}
	r.matches = match
	return r
}

// Unrecoverable makes a message a dead letter on its first attempt if errors.Is matches one of targets. For a type of
// errors use OnErrorAs[T](Always(DeadLetter())).
func Unrecoverable(targets ...error) Rule {
	r := newRule(fmt.Sprintf("Unrecoverable(%v)", targets), Always(DeadLetter()))
	if len(targets) == 0 || slices.Contains(targets, nil) {
		r.fault = errors.New("give at least one error, and no nil")
		return r
	}
	r.ofErrors(slices.Clone(targets)...)
	return r
}

// Always returns the policy that returns d for every failure.
func Always(d Decision) Policy { return func(Failure) Decision { return d } }

func newRule[P Chosen](name string, p P) Rule {
	r := Rule{name: name}
	r.policy, r.fault = chosen(p)
	return r
}

func (r *Rule) ofErrors(targets ...error) {
	one := func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	r.errors = targets
	r.matches = func(f Failure) bool { return one(f.Err) }
	r.covers = func(later Rule) bool {
		return len(later.errors) > 0 && !slices.ContainsFunc(later.errors, func(e error) bool { return !one(e) })
	}
}

// chosen returns p as a Policy.
func chosen[P Chosen](p P) (Policy, error) {
	if r, ok := any(p).(Retries); ok {
		return r.Policy()
	}
	v := reflect.ValueOf(p)
	if v.IsNil() {
		return nil, errors.New("the policy is nil")
	}
	return v.Convert(reflect.TypeFor[Policy]()).Interface().(Policy), nil
}
