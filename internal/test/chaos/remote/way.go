package remote

import (
	"context"
	"log/slog"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// Way is how the two sides talk.
type Way struct {
	Name  string // in the line of figures
	About string // of the scenario

	// Open makes what both sides share, in the parent.
	Open func(ctx context.Context) (Medium, error)
	// Here makes the part of an endpoint that submits messages of a kind, and what takes reports. What it drops of them
	// it logs at Warn, or above.
	Here func(kind string, at Place, reports *scheduler.Reports, log *slog.Logger) (submit bus.Part, takes edda.Runner,
		err error)
	// There calls do for each submission, until ctx ends.
	There func(ctx context.Context, at Place, do Do) error
}

// Medium is what both sides share.
type Medium struct {
	Address string                                // where processes find it
	Strike  func(context.Context, *lab.Lab) error // breaks some of it, notes a Strike, mends it; nil: it stays whole
	Close   func() error
}

// Place is that of a process, which its successors have too.
type Place struct {
	Address string
	No      int // 0 or 1, on either side
}

// Submission is what came there.
type Submission struct {
	remote.Run
	Key  string // by which the work is known
	Body []byte
}

// Do does the work of a submission, and reports how it ended.
type Do func(ctx context.Context, s Submission, by remote.Reporter) error

// Strike is a blow at what both sides share.
const Strike = "node kill"

// places are the processes of either side.
const places = 2
