package recoverability

import "time"

// CountConflicts makes a policy for conflicts of one for failures: p is told the lost saves, those within the budget
// included, as if they were the attempts. p nil is Default. Give it to bus.EndpointOptions.ConflictPolicy:
//
//	patient, err := recoverability.Retries{Delayed: 100, Step: time.Second, Max: time.Minute, Jitter: recoverability.Full}.Policy()
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

// Within asks p while a message has been failing for less than age, and last from then on: nil is Default for p, and
// Always(DeadLetter()) for last. It looks at Failure.First and Failure.Now; where a runtime gives no times, p decides.
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
