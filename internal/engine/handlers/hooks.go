package handlers

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/edda-go/edda/saga"
)

// Hooks are functions of the user that are called when messages go out and transactions end. Each may be nil.
type Hooks struct {
	Outgoing func(ctx context.Context, i *saga.Info)
	Around   *Around
}

// Faults logs the failures of a function that is called very often, at most once in faultWarns.
type Faults struct {
	mu    sync.Mutex
	count int       // since the last warning; guarded by mu
	told  time.Time // guarded by mu
}

const faultWarns = time.Minute // between two warnings

// Log logs a failure that Ask returned.
func (f *Faults) Log(err error, log *slog.Logger, text string, args ...any) {
	f.mu.Lock()
	f.count++
	count, say := f.count, time.Since(f.told) >= faultWarns
	if say {
		f.count, f.told = 0, time.Now()
	}
	f.mu.Unlock()
	if !say {
		return
	}
	err = new(Guest).Examined(Patience, err) // the value of a panic may have methods
	args = append(args, "failures", count, "error", beginning(err.Error(), mostShownError))
	var panicked *saga.PanicError
	if errors.As(err, &panicked) {
		args = append(args, "stack", beginning(string(panicked.Stack), mostShownStack))
	}
	log.Warn(text, args...)
}

const (
	mostShownError = 500
	mostShownStack = 8 << 10
)

// beginning returns the beginning of a text that may be long.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
