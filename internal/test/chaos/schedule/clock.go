package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// clock is the database's, as libfaketime shows it.
type clock struct {
	file    string
	env     []string
	offset  time.Duration
	highest time.Duration
}

func newClock() (*clock, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		return nil, errors.New(
			"libfaketime is not installed: apt-get install libfaketime, or leave the clock alone with -clock=false")
	}
	f, err := os.CreateTemp("", "edda-clock")
	if err != nil {
		return nil, err
	}
	c := &clock{file: f.Name()}
	c.env = []string{"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DISABLE_SHM=1", "DONT_FAKE_MONOTONIC=1"}
	if err := f.Chmod(0o644); err != nil { // Postgres runs as another user
		return nil, err
	}
	return c, c.jump(0)
}

func (c *clock) remove() { _ = os.Remove(c.file) }

func (c *clock) jump(by time.Duration) error {
	c.offset += by
	c.highest = max(c.highest, c.offset)
	next := c.file + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int(c.offset.Seconds())), 0o644); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}

// settle goes to the highest time that the clock has shown, so that everything that was ever due is due again.
func (c *clock) settle(ctx context.Context) error {
	if err := c.jump(c.highest - c.offset); err != nil {
		return err
	}
	return run.Sleep(ctx, time.Second)
}
