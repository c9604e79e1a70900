package recoverability

import "time"

// CountConflicts makes a policy for conflicts from a policy for failures: p gets the number of lost saves, including
// those within the budget, as the attempt. A nil p is Default. Use it as bus.EndpointOptions.ConflictPolicy:
//
//	series := recoverability.Retries{Delayed: 100, Step: time.Second, Max: time.Minute}
//	patient, err := series.Policy()
//	o := bus.EndpointOptions{ConflictPolicy: recoverability.CountConflicts(patient)}
func CountConflicts(p Policy) Policy {
	if p == nil {
		p = Default
	}
	return func(f Failure) Decision {
		f.Info.Attempt = max(f.Conflicts, 1)
		return p(f)
	}
}

// Within decides with p while a message has been failing for less than age, and with last from then on. A nil p is
// Default, a nil last is Always(DeadLetter()). The age is Failure.Now minus Failure.First; if First is zero, p decides.
func Within(age time.Duration, p, last Policy) Policy {
	if p == nil {
		p = Default
	}
	if last == nil {
		last = Always(DeadLetter())
	}
	return func(f Failure) Decision {
		if !f.First.IsZero() && f.Now.Sub(f.First) >= age {
			return last(f)
		}
		return p(f)
	}
}
