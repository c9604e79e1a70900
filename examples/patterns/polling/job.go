package polling

import (
	"time"

	"github.com/edda-go/edda/saga"
)

// page saga

const (
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute
	giveUpAfter  = 6 * time.Hour
)

// Job is the state of one export.
type Job struct {
	Pause time.Duration `json:"pause"`
}

func (j *Job) begin(ctx *saga.Context, _ Export) error {
	if !ctx.IsNew() {
		return nil
	}
	j.Pause = firstPause
	ctx.Timeout(giveUpAfter, GiveUp{})
	return j.look(ctx, LookAgain{})
}

func (j *Job) look(ctx *saga.Context, _ LookAgain) error {
	ctx.Send(Look{Name: ctx.Key()})
	return nil
}

func (j *Job) looked(ctx *saga.Context, m Progress) error {
	if !m.Done {
		ctx.Timeout(j.Pause, LookAgain{}, saga.Named("look"))
		j.Pause = min(2*j.Pause, longestPause)
		return nil
	}
	ctx.Publish(Exported{Name: ctx.Key(), File: m.File})
	ctx.Complete()
	return nil
}

func (j *Job) giveUp(ctx *saga.Context, _ GiveUp) error {
	ctx.Publish(ExportFailed{Name: ctx.Key()})
	ctx.Complete()
	return nil
}

// Jobs has an instance for each export that is not done.
var Jobs = saga.Define("export", saga.Options{},
	saga.StartedBy(func(m Export) string { return m.Name }, (*Job).begin),
	saga.OnReply((*Job).looked),
	saga.OnTimeout((*Job).look), saga.OnTimeout((*Job).giveUp))

// end
