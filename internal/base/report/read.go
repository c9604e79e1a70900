package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/edda-go/edda/saga"
)

// Run names an attempt of a run. It has the fields of remote.Run.
type Run struct {
	ID       saga.ID
	Attempt  int
	Manifest string
	Due      time.Time
	Token    string // of Token; "" is none
}

// Names are the names under which a submission has its run.
type Names struct {
	Kind                              string // of the names, in errors
	ID, Attempt, Manifest, Due, Token string
}

var errNone = errors.New("it is no submission of a run")

// Read reads the run of a submission. An error says which name is missing or wrong.
func (n Names) Read(get func(name string) string) (Run, error) {
	wrong := func(name, want string) (Run, error) {
		return Run{}, fmt.Errorf("%w: %s %s: want %s", errNone, n.Kind, name, want)
	}
	id, err := saga.ParseID(get(n.ID))
	if err != nil || id.IsZero() {
		return wrong(n.ID, "a UUID that is not zero")
	}
	attempt, ok := ParseAttempt(get(n.Attempt))
	if !ok {
		return wrong(n.Attempt, "a number from 1 to 2147483647")
	}
	manifest := get(n.Manifest)
	if manifest == "" {
		return wrong(n.Manifest, "the name of a manifest")
	}
	due, err := time.Parse(time.RFC3339Nano, get(n.Due))
	if err != nil {
		return wrong(n.Due, "a time as in RFC 3339")
	}
	return Run{ID: id, Attempt: attempt, Manifest: manifest, Due: due, Token: get(n.Token)}, nil
}

// Write writes what Read reads.
func (n Names) Write(set func(name, value string), f *saga.Fire, token string) {
	set(n.ID, f.Run.String())
	set(n.Attempt, strconv.Itoa(f.Attempt))
	set(n.Manifest, f.Manifest)
	set(n.Due, f.Due.Format(time.RFC3339Nano))
	if token != "" {
		set(n.Token, token)
	}
}

// ParseAttempt reads the number of an attempt. ok is false for a text that is none.
func ParseAttempt(text string) (attempt int, ok bool) {
	attempt, err := strconv.Atoi(text)
	return attempt, err == nil && IsAttempt(attempt)
}

// IsAttempt reports whether an attempt may have the number.
func IsAttempt(n int) bool { return n >= 1 && n <= math.MaxInt32 }

// Strict reads a report from JSON. A name that the report does not have is an error.
func Strict(from io.Reader, into any) error {
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	return decode(d, into)
}

// Lenient is Strict without that error: a program of another version may say more.
func Lenient(from io.Reader, into any) error { return decode(json.NewDecoder(from), into) }

// decode reads one value, and nothing may follow it.
func decode(d *json.Decoder, into any) error {
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("another value follows")
		}
		return fmt.Errorf("want one value: %w", err)
	}
	return nil
}
