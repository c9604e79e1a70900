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
	// ErrState means that this definition cannot read the stored state. The messages of the instance fail
	// permanently; other instances are not affected.
	ErrState = errors.New("saga state cannot be read")
	// ErrNewerState means that a newer program wrote the state. Leave the message for a newer worker.
	ErrNewerState = errors.New("saga state was written by a newer program")
	// ErrTooLarge means that a body, a state, the headers or the messages of a step exceed their limit.
	ErrTooLarge = errors.New("too large")
	// ErrInvalidText means that a text contains NUL or is not UTF-8. Postgres refuses both, and encoding/json would
	// write U+FFFD for bytes that are not UTF-8.
	ErrInvalidText = errors.New("not UTF-8 text without NUL")
)

// PermanentError is a failure that a retry cannot cure.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// RetryAfterError is a failure with the time to wait before the next attempt.
type RetryAfterError struct {
	After time.Duration // ≥ 0
	Err   error
}

func (e *RetryAfterError) Error() string { return fmt.Sprintf("retry after %v: %v", e.After, e.Err) }
func (e *RetryAfterError) Unwrap() error { return e.Err }

// DiscardError consumes the message and records the reason. It is not a failure.
type DiscardError struct{ Reason string }

func (e *DiscardError) Error() string { return "discard: " + e.Reason }

// PanicError is a panic of user code, with its stack.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value if that is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Permanent wraps err as a failure that a retry cannot cure: the default policy makes the message a dead letter.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if isNil(err) {
		return nil
	}
	return &PermanentError{Err: err}
}

// RetryAfter wraps err as a failure after which the default policy waits for d, for example after an HTTP 429. It
// counts as one attempt. A negative d means 0. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if isNil(err) {
		return nil
	}
	return &RetryAfterError{After: max(d, 0), Err: err}
}

// Discard returns an error that consumes the message, records the reason, and undoes everything else in the step.
func Discard(reason string) error {
	if reason == "" {
		reason = "no reason given"
	}
	return &DiscardError{Reason: reason}
}

// permanentf returns a *PermanentError.
func permanentf(format string, args ...any) error {
	return &PermanentError{Err: fmt.Errorf(format, args...)}
}

// nameOf returns the name of an instance for errors. It quotes a key with characters that are not printable, so that
// the key cannot forge a line of a log.
func nameOf(saga, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	return saga + "/" + key
}

// Succeeded reports whether err means success: nil, or a nil pointer of an error type. It is for runtimes.
func Succeeded(err error) bool { return isNil(err) }

// Examined calls Error, errors.Is and errors.As on err, and returns an error that wraps err and keeps its text. It is
// for runtimes: a method of a user's error that panics or ends its goroutine then does so here, where the runtime
// handles it like a panic of the handler, and not later. A nil, or nil pointer, is returned unchanged.
func Examined(err error) error {
	if isNil(err) {
		return err
	}
	if _, done := err.(*examined); done { //nolint:errorlint // itself, and not what it wraps
		return err
	}
	var permanent *PermanentError
	_ = errors.As(err, &permanent) || errors.Is(err, ErrState)
	e := &examined{error: err, text: fmt.Sprint(err)} // fmt.Sprint survives a panic of Error
	var panicked *PanicError
	if errors.As(err, &panicked) {
		e.stack = topOf(panicked.Stack)
	}
	return e
}

// examined is an error whose text has been read.
type examined struct {
	error
	text  string
	stack string // of a panic, see topOf
}

// PanicStack returns the place of the panic, one line for each of the innermost functions, or "" if the error is no
// panic. Package deadletter uses it.
func (e *examined) PanicStack() string { return e.stack }

// shownFrames is the number of functions of a panic's stack that are shown.
const shownFrames = 10

// topOf returns the functions that panicked, the innermost first, each with its file and line. stack is the result of
// debug.Stack in the deferred function that recovers.
func topOf(stack []byte) string {
	_, below, found := strings.Cut("\n"+string(stack), "\npanic(")
	if !found {
		return ""
	}
	lines := strings.Split(below, "\n")
	var top []string
	for n := 2; n+1 < len(lines) && len(top) < shownFrames; n += 2 {
		name, at := lines[n], strings.TrimSpace(lines[n+1])
		if strings.HasPrefix(name, "runtime.") || name == "" {
			continue
		}
		if open := strings.LastIndexByte(name, '('); open > 0 {
			name = name[:open]
		}
		at, _, _ = strings.Cut(at, " +0x")
		top = append(top, "at "+name+" ("+at+")")
	}
	return strings.Join(top, "\n")
}

func (e *examined) Error() string { return e.text }
func (e *examined) Unwrap() error { return e.error }

// isNil reports whether err is nil or a typed nil: `var e *MyErr; return e` is meant as success. It uses reflection, so
// it is called only after a failure.
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

// caught recovers a panic of user code and stores it in *err. Use: defer caught(&err).
func caught(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}
