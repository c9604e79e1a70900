package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

// letterFlags choose dead letters on a command line.
type letterFlags struct {
	filter       deadletter.Filter
	message      string
	since, until string
}

func (f *letterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.filter.Endpoint, "endpoint", "", "only those that died in this endpoint")
	c.Flags().StringVar(&f.filter.Kind, "kind", "", "only those of this kind")
	c.Flags().StringVar(&f.filter.Group, "group", "", `only those of this group; "edda dead group" shows the groups`)
	c.Flags().StringVar(&f.message, "message", "", "only those of the message with this id")
	c.Flags().StringVar(&f.since, "since", "", "only those that died then or later: 2026-11-21T10:00:00Z, or 2h "+
		"for two hours ago")
	c.Flags().StringVar(&f.until, "until", "", "only those that died earlier than that")
}

// given reports whether a flag chooses anything.
func (f *letterFlags) given() bool {
	return f.filter.Endpoint+f.filter.Kind+f.filter.Group+f.message+f.since+f.until != ""
}

// check reads what needs no database.
func (f *letterFlags) check(c *cobra.Command) (err error) {
	if f.message != "" {
		if f.filter.MessageID, err = saga.ParseID(f.message); err != nil {
			return usage(c, fmt.Errorf("--message %s: %w", escape(f.message), err))
		}
	}
	return checkTimes(c, "since", f.since, "until", f.until)
}

// read is the filter. "Two hours ago" is measured by the database's clock.
func (f *letterFlags) read(ctx context.Context, t letters) (deadletter.Filter, error) {
	if f.since+f.until == "" {
		return f.filter, nil
	}
	now, err := t.now(ctx)
	if err != nil {
		return f.filter, err
	}
	f.filter.DiedFrom, _ = timeOf(f.since, now) // check has read them once
	f.filter.DiedBefore, _ = timeOf(f.until, now)
	return f.filter, nil
}

// checkTimes reads the times that flags were given, as pairs of a flag's name and its text.
func checkTimes(c *cobra.Command, flags ...string) error {
	for n := 0; n < len(flags); n += 2 {
		if _, err := timeOf(flags[n+1], time.Time{}); err != nil {
			return usage(c, fmt.Errorf("--%s %s: %w", flags[n], escape(flags[n+1]), err))
		}
	}
	return nil
}

// timeOf reads a time, or how long it is before now; "" is none.
func timeOf(text string, now time.Time) (time.Time, error) {
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
