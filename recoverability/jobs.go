package recoverability

import "time"

// JobAction is the operation of a job on dead letters.
type JobAction string

// The actions of jobs.
const (
	JobRetry   JobAction = "retry"
	JobDiscard JobAction = "discard"
)

// JobState is the state of a job.
//
//	open ──each step: some letters end, the mark advances──▶ open ──▶ done
//	  └──▶ cancelled
type JobState string

// The states of jobs. A job that no process is running is open, too. A paused job has stopped itself, see Job.Plan.
const (
	JobOpen      JobState = "open"
	JobPaused    JobState = "paused"
	JobDone      JobState = "done"
	JobCancelled JobState = "cancelled"
)

// Job ends the dead letters that Filter selects, in the order of their numbers, up to the last letter at the time
// when the job was created. Later letters are not part of it, so no message is retried in circles.
//
// A job is a row: a filter, a rate, the last number that it covers, and a mark, the last number that it has finished. A
// step is one transaction that locks the job, ends the next letters and advances the mark. So a job that is killed
// continues where its last step ended, and two callers that run one job alternate. A letter that cannot be retried,
// because its endpoint has no queue, is kept and counted, and the job continues.
type Job struct {
	Number int64 // given by the table
	Action JobAction
	Filter LetterFilter // After and Limit are not used
	Rate   float64      // letters per second, over all processes that run the job; 0 is no limit
	Reason string       // of JobDiscard and of a Patch, for the record

	// To is the endpoint that a retry sends the letters to; "" sends each to its own endpoint.
	To string
	// Plan makes a retry a canary: it has the number of letters of each stage, and its last number holds for all
	// further stages. After a stage the job waits until each of its messages has left the queue or has failed again, or
	// 30 seconds have passed. A message has failed again when it is dead again or waits for its next attempt. If more
	// than a tenth of the stage, or of all stages so far, have failed again, the job is paused; ResumeJob continues it
	// with the first stage. Nil sends all letters at once. A plan has at most 100 stages of 1 to 1,000,000 letters.
	Plan []int
	// Patch is a JSON merge patch (RFC 7396) that a retry applies to the body of each letter; nil changes no body.
	// The old letters are kept as for Edit. RunJob needs operate.Options.Patch. Letters that the patch does not fit
	// stay dead.
	Patch []byte

	State   JobState
	Ended   int64     // letters that it has retried or discarded
	Kept    int64     // letters that it could not retry; they remain dead letters
	Undone  int64     // letters that UndoJob has taken back
	Stage   int       // of a Plan, from 1
	Error   string    // why the last kept letter could not be retried, or why the job is paused
	Mark    int64     // the job is finished with every letter up to this number
	Last    int64     // the last number of the job
	Created time.Time // by the database's clock, as is Changed
	Changed time.Time
}

// PatchPreview is a letter as a job with a Patch would send it.
type PatchPreview struct {
	Letter Letter
	Body   []byte // after the patch
	Err    error  // why the job would keep the letter
}

// Undone is the result of undoing a job.
type Undone struct {
	Returned int64 // letters that are dead letters again
	Handled  int64 // left unchanged: handled, attempted (and perhaps dead again), moved, retried again or in hand
}
