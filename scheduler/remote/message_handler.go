package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/scheduler"
)

// NewMessageHandler makes a handler of the reports on runs that Publish has published, for a Router of Watermill or, by
// watermill.Consume, for an endpoint. It writes them with reports. The payload of a report is an object:
//
//	{"run": "019a…", "attempt": 1, "token": "x1…", "outcome": "succeeded"}
//
// The token is that of the submission. The outcome is "beat", "succeeded", "failed" or "dead", and the last two have an
// "error". MessageClient makes such reports. Other names are ignored, so that a program of another version may say
// more.
//
// It returns nil when the report is committed, when the attempt is over or there is no such run, and for a payload that
// is no report or has not the token. It returns an error when the database is away: the broker has to bring the report
// again then. NewMessageHandler panics if reports is nil.
func NewMessageHandler(reports *scheduler.Reports, o HandlerOptions) message.NoPublishHandlerFunc {
	if reports == nil {
		panic("remote.NewMessageHandler: the reports are nil: make them with scheduler.NewReports")
	}
	o.Logger = handlers.Logger(o.Logger)
	return func(m *message.Message) error {
		said, err := readMessage(m.Payload)
		if err != nil {
			o.Logger.Warn("edda: a message is not a report on a run, and is dropped", "message_uuid", m.UUID,
				"error", err)
			return nil
		}
		about := []any{"run", said.Run, "attempt", said.Attempt, "outcome", said.Outcome}
		err = takeReport(m.Context(), reports, said)
		switch {
		case err == nil && said.Error != "":
			o.Logger.Warn("edda: a run failed in a remote program", append(about, "error", said.Error)...)
		case errors.Is(err, scheduler.ErrNoRun):
			o.Logger.Warn("edda: a report names a run that does not exist, and is dropped", about...)
			return nil
		case errors.Is(err, scheduler.ErrNotCurrent):
			o.Logger.Debug("edda: a report names an attempt that has ended, and is dropped", about...)
			return nil
		case errors.Is(err, wire.ErrNoToken):
			o.Logger.Warn("edda: a report without the token of its attempt was refused", about...)
			return nil
		}
		return err
	}
}

func takeReport(ctx context.Context, reports *scheduler.Reports, said reported) error {
	ctx = wire.WithToken(ctx, said.Token)
	if said.Outcome == beat {
		return reports.Beat(ctx, said.Run, said.Attempt)
	}
	failure, _ := said.failure() // readMessage has looked
	return reports.End(ctx, said.Run, said.Attempt, failure)
}

// readMessage returns an error for a payload that no MessageClient writes.
func readMessage(payload []byte) (said reported, err error) {
	if len(payload) > mostReport {
		return said, fmt.Errorf("it has %d bytes: want at most %d", len(payload), mostReport)
	}
	if err := lenient(bytes.NewReader(payload), &said); err != nil {
		return said, fmt.Errorf("want an object with run, attempt and outcome: %w", err)
	}
	_, known := said.failure()
	switch {
	case said.Run.IsZero() || !isAttempt(said.Attempt):
		return said, errors.New("want a run, and an attempt from 1")
	case !known && (said.Outcome != beat || said.Error != ""):
		return said, errors.New(`want the outcome "beat" or "succeeded", or "failed" or "dead" with an "error"`)
	}
	return said, nil
}
