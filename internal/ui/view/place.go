package view

import (
	"errors"
	"strings"
	"time"

	"github.com/edda-go/edda/saga"
)

// PlaceText returns a place in a list that is ordered by time, in the form of List.Next: TIME/ID.
func PlaceText(at time.Time, id saga.ID) string {
	return at.Format(time.RFC3339Nano) + "/" + id.String()
}

// ReadPlace parses the output of PlaceText. "" is the beginning of the list.
func ReadPlace(text string) (at time.Time, id saga.ID, err error) {
	if text == "" {
		return at, id, nil
	}
	first, second, _ := strings.Cut(text, "/")
	if at, err = time.Parse(time.RFC3339Nano, first); err == nil {
		id, err = saga.ParseID(second)
	}
	if err != nil {
		err = errors.New("want a time and an id, as in 2026-11-21T10:00:00Z/0198c0de-0000-7000-8000-000000000001")
	}
	return at, id, err
}

// ReadTime parses a time, or a duration before now; "" is the zero time.
func ReadTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(strings.TrimSpace(text)); err == nil {
		if ago < 0 {
			return time.Time{}, errors.New("this is in the future")
		}
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New("want a time like 2026-11-21T10:00:00Z, or how long ago, like 90m")
	}
	return at, nil
}
