package saga

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// SendOption is sealed. The same values serve Context here, and the contexts and senders of the bus.
type SendOption interface{ send(*SendSettings) error }

// SendSettings is what the options of one call ask for.
type SendSettings struct {
	Delay  time.Duration // > 0, or zero
	At     time.Time     // zero unless At was given
	ID     ID            // zero unless WithID was given
	To     string
	Header map[string]string
	Fire   *Fire // nil unless WithFire was given
}

// Settings reads options, for runtimes. An error names the option that is wrong.
func Settings(o ...SendOption) (SendSettings, error) {
	var s SendSettings
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

type sendOption func(*SendSettings) error

func (f sendOption) send(s *SendSettings) error { return f(s) }

// Delay makes the message due after d, counted by the store's clock. d ≤ 0 is now.
func Delay(d time.Duration) SendOption {
	return sendOption(func(s *SendSettings) error {
		s.Delay = max(d, 0)
		return nil
	})
}

// At makes the message due at t; a past t is now. The zero time, or a year outside 1 to 9999, is an error.
func At(t time.Time) SendOption {
	return sendOption(func(s *SendSettings) error {
		s.At = t
		return checkTime(t)
	})
}

// WithID gives the message its id, so that sending it twice writes it once.
func WithID(id ID) SendOption {
	return sendOption(func(s *SendSettings) error {
		s.ID = id
		if id.IsZero() {
			return errors.New("WithID: the zero id means none")
		}
		return nil
	})
}

// WithHeader adds a header, each name once. Names that begin with "edda-" are reserved.
func WithHeader(name, value string) SendOption {
	return sendOption(func(s *SendSettings) error {
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

// To sends to this endpoint, for one call, whatever the routes say.
func To(endpoint string) SendOption {
	return sendOption(func(s *SendSettings) error {
		s.To = endpoint
		if err := CheckName(endpoint); err != nil {
			return fmt.Errorf("To: %w", err)
		}
		return nil
	})
}

// WithFire says which firing emits the message. It is for schedulers: whoever handles the message reports to the run.
func WithFire(f Fire) SendOption {
	return sendOption(func(s *SendSettings) error {
		s.Fire = &f
		switch {
		case f.Run.IsZero() || f.Attempt < 1:
			return fmt.Errorf("WithFire: run %s, attempt %d: want a run, and an attempt from 1", f.Run, f.Attempt)
		case !validText(f.Manifest) || f.Manifest == "":
			return fmt.Errorf("WithFire: manifest name of %d bytes: %w", len(f.Manifest), ErrInvalidText)
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

// checkTime keeps out what a database cannot hold or an author did not mean.
func checkTime(t time.Time) error {
	switch y := t.UTC().Year(); {
	case t.IsZero():
		return errors.New("the zero time is not a due time")
	case y < 1 || y > 9999:
		return fmt.Errorf("due in the year %d: want 1 to 9999", y)
	}
	return nil
}

// validText: Postgres text takes neither NUL nor bytes that are not UTF-8.
func validText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// TimeoutOption is sealed.
type TimeoutOption interface{ timeout(*timeoutSettings) error }

type timeoutSettings struct{ name string }

type timeoutOption func(*timeoutSettings) error

func (f timeoutOption) timeout(s *timeoutSettings) error { return f(s) }

// Named gives a timeout a name, unique in its instance: asking again under the name moves it, and
// Context.CancelTimeout finds it. At most 63 bytes.
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
