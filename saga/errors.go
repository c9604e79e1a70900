package saga

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode"
)

var (
	// ErrState: the stored state cannot be read by this definition. The messages of the instance are failures,
	// permanent ones; other instances are not affected.
	ErrState = errors.New("saga state cannot be read")
	// ErrNewerState: a newer program wrote the state. Leave the message for a worker that knows it.
	ErrNewerState = errors.New("saga state was written by a newer program")
	// ErrTooLarge: a body, a state or the headers are over their limit.
	ErrTooLarge = errors.New("too large")
	// ErrInvalidText: a text cannot be stored as it is. Postgres takes neither NUL nor bytes that are not UTF-8, and
	// encoding/json would write U+FFFD in their place.
	ErrInvalidText = errors.New("not UTF-8 text without NUL")
)

// PermanentError is a failure that another attempt cannot cure.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// RetryAfterError is a failure that names how long to wait.
type RetryAfterError struct {
	After time.Duration // ≥ 0
	Err   error
}

func (e *RetryAfterError) Error() string { return fmt.Sprintf("retry after %v: %v", e.After, e.Err) }
func (e *RetryAfterError) Unwrap() error { return e.Err }

// DiscardError is not a failure: the message is consumed and the reason recorded.
type DiscardError struct{ Reason string }

func (e *DiscardError) Error() string { return "discard: " + e.Reason }

// PanicError is a panic of user code, with the stack where it happened.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap gives the error that was the panic's value, if it was one.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Permanent makes err a failure that goes to the dead letters now. Permanent(nil) is nil: no error, no failure.
func Permanent(err error) error {
	if isNil(err) {
		return nil
	}
	return &PermanentError{Err: err}
}

// RetryAfter makes err a failure that is tried again after d, as an HTTP 429 asks. It costs one attempt.
// A negative d is zero. RetryAfter(d, nil) is nil: no error, no failure.
func RetryAfter(d time.Duration, err error) error {
	if isNil(err) {
		return nil
	}
	return &RetryAfterError{After: max(d, 0), Err: err}
}

// Discard consumes the message, records the reason, and undoes everything else the step did.
func Discard(reason string) error {
	if reason == "" {
		reason = "no reason given"
	}
	return &DiscardError{Reason: reason}
}

// permanentf is a fault of a message or a definition, found by this package.
func permanentf(format string, args ...any) error {
	return &PermanentError{Err: fmt.Errorf(format, args...)}
}

// nameOf is how errors call an instance. A key that could forge a line of a log, or turn it round, is quoted.
func nameOf(saga, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	return saga + "/" + key
}

// Succeeded tells, for runtimes, whether a handler that returned err meant success: nil, or a typed nil.
func Succeeded(err error) bool { return isNil(err) }

// Examined returns err, for runtimes, after errors.Is and errors.As have walked through it. The methods that they call
// are a user's: where one of them panics it does so here, in the function that recovers panics of the handler, and not
// in whoever judges the error later.
func Examined(err error) error {
	if isNil(err) {
		return err
	}
	var permanent *PermanentError
	_ = errors.As(err, &permanent) || errors.Is(err, ErrState)
	return err
}

// isNil also holds for a typed nil: `var e *MyErr; return e` is a success, because its author meant one.
// It is called on the way of failures only, so reflection costs the good path nothing.
func isNil(err error) bool {
	if err == nil {
		return true
	}
	switch v := reflect.ValueOf(err); v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// caught turns a panic of user code into *err. Use: defer caught(&err).
func caught(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}
