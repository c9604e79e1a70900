package recoverability_test

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

var (
	errSoldOut       = errors.New("sold out")
	errNoSuchArticle = errors.New("no such article")
)

// A policy is a function: it treats the errors that it names, and leaves the rest to an existing policy.
func ExamplePolicy() {
	rest, err := recoverability.Retries{Immediate: 1, Delayed: 6, Step: time.Second,
		Growth: recoverability.Exponential}.Policy()
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := func(f recoverability.Failure) recoverability.Decision {
		if errors.Is(f.Err, errSoldOut) {
			return recoverability.DiscardBecause("sold out")
		}
		return rest(f)
	}
	for _, err := range []error{errSoldOut, saga.Permanent(errors.New("no such article")), errors.New("timeout")} {
		v := recoverability.Resolve(policy, recoverability.Failure{Info: saga.Info{Attempt: 1}, Err: err})
		fmt.Printf("%v: %v\n", err, v.Action)
	}
	// Output:
	// sold out: discard
	// no such article: dead letter
	// timeout: retry now
}

// Errors and kinds have policies of their own. The first rule that matches decides.
func ExampleChoose() {
	policy, err := recoverability.Choose(recoverability.Default,
		recoverability.OnError(errSoldOut, recoverability.Always(recoverability.DiscardBecause("sold out"))),
		recoverability.OnErrorAs[*net.OpError](recoverability.Retries{Delayed: 20, Step: time.Second,
			Growth: recoverability.Exponential, Max: 5 * time.Minute, Jitter: recoverability.Full}),
		recoverability.OnKind("order.charge", recoverability.Retries{Immediate: 1}),
		recoverability.Unrecoverable(errNoSuchArticle),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, err := range []error{errSoldOut, &net.OpError{Op: "dial", Err: errors.New("no answer")}, errNoSuchArticle,
		errors.New("timeout")} {
		v := recoverability.Resolve(policy, recoverability.Failure{Info: saga.Info{Attempt: 1}, Err: err})
		fmt.Printf("%v: %v\n", err, v.Action)
	}
	// Output:
	// sold out: discard
	// dial: no answer: retry in
	// no such article: dead letter
	// timeout: retry now
}
