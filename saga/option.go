package saga

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// SendOption is an option of a send, here and in the bus. It is sealed.
type SendOption interface{ send(*sendSettings) error }

// sendSettings are the values of the options of one send.
type sendSettings struct {
	Delay  time.Duration // > 0, or zero
	At     time.Time     // zero unless At was given
	ID     ID            // zero unless WithID was given
	To     string
	Header map[string]string
	Firing *Firing       // nil unless WithFiring was given
	Expire time.Duration // > 0, or zero: never

	MustRoute bool
}

// settingsOf evaluates options. An error names the option that is wrong.
func settingsOf(o ...SendOption) (sendSettings, error) {
	var s sendSettings
	for _, opt := range o {
		if opt == nil {
			return s, errors.New("a send option is nil")
		}
		if err := opt.send(&s); err != nil {
			return s, err
		}
	}
	if s.Delay > 0 && !s.At.IsZero() {
		return s, errors.New("give Delay or At, not both")
	}
	return s, nil
}

type sendOption func(*sendSettings) error

func (f sendOption) send(s *sendSettings) error { return f(s) }

// Delay makes the message due after d, by the database's clock. d ≤ 0 means now.
func Delay(d time.Duration) SendOption {
	return sendOption(func(s *sendSettings) error {
		s.Delay = max(d, 0)
		return nil
	})
}

// At makes the message due at t; a past t means now. The zero time, and a year outside 1 to 9999, are errors.
func At(t time.Time) SendOption {
	return sendOption(func(s *sendSettings) error {
		s.At = t
		return checkTime(t)
	})
}

// WithID sets the id of the message, so that sending it twice writes it once. The bus remembers such ids for seven
// days. The zero id is an error.
func WithID(id ID) SendOption {
	return sendOption(func(s *sendSettings) error {
		s.ID = id
		if id.IsZero() {
			return errors.New("WithID: the id is zero: give an id, or leave WithID out")
		}
		return nil
	})
}

// WithHeader adds a header. A name that is given twice or begins with "edda-" is an error, and so is text that
// contains NUL or is not UTF-8.
func WithHeader(name, value string) SendOption {
	return sendOption(func(s *sendSettings) error {
		if err := checkHeader(name, value); err != nil {
			return err
		}
		if _, twice := s.Header[name]; twice {
			return fmt.Errorf("header %.80q is given twice", name)
		}
		if s.Header == nil {
			s.Header = map[string]string{}
		}
		s.Header[name] = value
		return nil
	})
}

// To sends the message to this endpoint and ignores the routes.
func To(endpoint string) SendOption {
	return sendOption(func(s *sendSettings) error {
		s.To = endpoint
		if err := CheckName(endpoint); err != nil {
			return fmt.Errorf("To: %w", err)
		}
		return nil
	})
}

// MustRoute makes it an error to publish an event to which no endpoint is subscribed: the error is bus.ErrNoRoute, and
// a step fails permanently with it. Without MustRoute such an event is not written. A command must always have a route.
func MustRoute() SendOption {
	return sendOption(func(s *sendSettings) error {
		s.MustRoute = true
		return nil
	})
}

// Expire discards the message, with the reason "expired", if no handler has begun with it within d after its first
// due time. Workers check this before each attempt, by the database's clock. The time d starts anew when an operator
// retries the message from the dead letters, and when a relay carries it into another database. d must be positive
// and at most Limits.MaxDelay. A program that takes messages with the SQL function edda.take must check the header
// edda-expire itself.
func Expire(d time.Duration) SendOption {
	return sendOption(func(s *sendSettings) error {
		s.Expire = d
		if d <= 0 {
			return fmt.Errorf("Expire: %v: want more than 0", d)
		}
		return nil
	})
}

// WithFiring sets the firing that emits the message. It is for schedulers: the run gets the outcome of the message.
func WithFiring(f Firing) SendOption {
	return sendOption(func(s *sendSettings) error {
		s.Firing = &f
		switch {
		case f.Run.IsZero() || f.Attempt < 1:
			return fmt.Errorf("WithFiring: run %s, attempt %d: want a run id, and an attempt from 1", f.Run, f.Attempt)
		case !validText(f.Manifest) || f.Manifest == "":
			return fmt.Errorf("WithFiring: manifest name of %d bytes: %w", len(f.Manifest), ErrInvalidText)
		}
		return nil
	})
}

const reservedHeader = "edda-"

func checkHeader(name, value string) error {
	switch {
	case name == "":
		return errors.New("a header has an empty name")
	case !validText(name):
		return fmt.Errorf("a header has a name of %d bytes: %w", len(name), ErrInvalidText)
	case len(name) >= len(reservedHeader) && strings.EqualFold(name[:len(reservedHeader)], reservedHeader):
		return fmt.Errorf("header %.80q: names that begin with %q are reserved", name, reservedHeader)
	case !validText(value):
		return fmt.Errorf("header %.80q with a value of %d bytes: %w", name, len(value), ErrInvalidText)
	}
	return nil
}

// checkTime refuses the zero time, and times that Postgres cannot store.
func checkTime(t time.Time) error {
	switch y := t.UTC().Year(); {
	case t.IsZero():
		return errors.New("the zero time is not a due time")
	case y < 1 || y > 9999:
		return fmt.Errorf("due in the year %d: want 1 to 9999", y)
	}
	return nil
}

// validText reports whether Postgres can store s as text: UTF-8 without NUL.
func validText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// TimeoutOption is an option of Context.Timeout and Context.TimeoutAt. It is sealed.
type TimeoutOption interface{ timeout(*timeoutSettings) error }

type timeoutSettings struct{ name string }

type timeoutOption func(*timeoutSettings) error

func (f timeoutOption) timeout(s *timeoutSettings) error { return f(s) }

// Named gives a timeout a name of 1 to 63 bytes, unique in its instance. A second call with the name moves the timeout,
// and Context.CancelTimeout cancels it.
func Named(name string) TimeoutOption {
	return timeoutOption(func(s *timeoutSettings) error {
		s.name = name
		switch {
		case name == "" || len(name) > maxName:
			return fmt.Errorf("timeout name of %d bytes: want 1 to %d", len(name), maxName)
		case !validText(name):
			return fmt.Errorf("timeout name of %d bytes: %w", len(name), ErrInvalidText)
		}
		return nil
	})
}
