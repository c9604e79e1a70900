package page

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
)

// jobPage is the page of a job on many dead letters.
type jobPage struct {
	Head
	Job     recoverability.Job
	Idle    time.Duration        // time without progress, if it is open; 0 if that is short
	Entries []operate.AuditEntry // who changed the job, and when
	Forms   []act.Form

	shown view.Object
}

// JSON returns the job as in the list of the command.
func (j *jobPage) JSON() any { return j.shown }

const (
	entriesOfJob = 20
	idleAfter    = 2 * time.Minute // more than a stage of a canary waits
)

// Job reads one job, and who began and changed it.
func (s *Source) Job(ctx context.Context, a Ask) (Page, error) {
	number, err := strconv.ParseInt(a.Path("number"), 10, 64)
	if err != nil {
		return nil, missing("The address does not contain the number of a job.")
	}
	j, err := s.Op.DeadLetters().Job(ctx, number)
	if err != nil {
		return nil, faultOf(err, fmt.Sprintf("There is no job %d. Edda keeps a job for 30 days after its end.", number))
	}
	p := &jobPage{Head: head("dead", fmt.Sprintf("Job %d", number), "edda dead jobs").
		audited("dead", fmt.Sprintf("job %d", number)), Job: j, Forms: act.Job(j)}
	j.Patch = patchOf(s, a, j.Filter.Kind, j.Patch)
	p.shown = view.Jobs([]recoverability.Job{j}).View().JSON
	if idle := p.Now.Sub(j.Changed); j.State == recoverability.JobOpen && idle > idleAfter {
		p.Idle = idle
	}
	p.Entries, err = s.Op.Audit(ctx, operate.AuditFilter{Target: fmt.Sprintf("job %d", number), Limit: entriesOfJob})
	return p, err
}
