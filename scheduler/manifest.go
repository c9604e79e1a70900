package scheduler

import (
	"context"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Sender sends messages in the caller's transaction. *bus.Bus implements it. A Scheduler passes saga.WithFiring and the
// options of the manifest. If SendTx returns an error, it has sent no message, and the transaction may be aborted. If
// the Sender has the method InTx of *bus.Bus, a Scheduler dispatches in its transactions, at READ COMMITTED.
type Sender interface {
	SendTx(ctx context.Context, tx pgx.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error)
	// Database returns the pool and the schema to which SendTx sends; a schema of "" is "edda".
	Database() (pool *pgxpool.Pool, schema string)
}

// Manifest is a stored schedule with the message that it sends.
type Manifest struct {
	Name    string       // unique in the schema: [a-z][a-z0-9_./-]*, at most 127 bytes
	When    When         // Cron, Every, Once, OnDemand, After or Dormant
	Message saga.Message // stored as bytes, sent as a command; saga.Info.Firing has the data of one firing
	Group   string       // a group of Options.Groups or of the database; "" is no group
	Expires time.Time    // no due time from this moment on; zero is never

	Misfire   Misfire       // policy for due times that passed without a run
	MisfireBy time.Duration // a due time older than this counts as missed; 0 is 60 s. MisfireAll ignores it
	// maximum of missed due times that MisfireAll fires, the latest ones; 0 is 1,000, at most 1,000,000
	MisfireUp int

	Exclude []Exclusion // due times that are left out on purpose
	// a run begins up to this much later, by the same amount on every server; 0 is no delay, at most 24 h
	Variance time.Duration
	Overlap  bool // a run need not wait for the end of the previous one

	Timeout       time.Duration // of a run, from its dispatch; 0 is 20 min, at least 1 s; NoTimeout is no timeout
	Retries       int           // after the first attempt; 0 is 3, -1 is no retry, at most 100
	RetryDelay    time.Duration // before the first retry, doubled for each further one; 0 is 5 min
	MaxRetryDelay time.Duration // maximum of the doubled delay; 0 is 1 h, or RetryDelay if that is longer
	Priority      int           // 0 to 31; runs of a higher priority are dispatched first
	Paused        bool          // declared, but does not fire. Resume does not change that; the next declaration does
}

// NoTimeout is a Manifest.Timeout without a limit. If the message of such a run is deleted, the run stays open until
// an operator cancels it.
const NoTimeout time.Duration = 1<<63 - 1

// Misfire decides about due times that passed without a run, because no server ran, the manifest was paused, or its
// last run had not ended.
type Misfire uint8

// The policies. A due time that is not older than Manifest.MisfireBy fires under each of them. If there are several
// such due times, MisfireOnce and MisfireSkip fire only the last.
const (
	MisfireOnce Misfire = iota // one run, for the last due time that was missed
	MisfireSkip                // no run: the next due time is the next to fire
	MisfireAll                 // one run for each, in order, up to Manifest.MisfireUp
)

// Group limits the runs of several manifests.
type Group struct {
	Name     string // same rules as for the name of a manifest
	Max      int    // runs that are active at a time; 0 is no limit. Lowering it ends no active run
	Strict   bool   // Max is never exceeded. Without it each server counts by itself: see Options.MaxConcurrentDispatch
	Priority int    // 0 to 31: groups of a higher priority are dispatched first
}

// Exclusion leaves due times out, in the zone of Cron, or in UTC for Every and Once. Each field that is set must match;
// a due time is left out if any Exclusion matches. That is no misfire. Exclusions apply to Cron, Every and Once,
// because a clock decides only those.
type Exclusion struct {
	Days []time.Weekday // any of these
	From time.Time      // first date; its time of day and its zone are ignored
	To   time.Time      // last date, included; if From and To are both zero, any date
	Of   Window         // a part of the day
}

// Window is a part of the day, by the wall clock: from Start until before End, over midnight when End is not after
// Start. It belongs to the day on which it starts: Friday's 22:00 to 06:00 contains 02:00 of Saturday. The zero
// Window is the whole day.
type Window struct{ Start, End TimeOfDay }

// TimeOfDay is a time of day as a wall clock shows it.
type TimeOfDay struct{ Hour, Minute, Second int }
