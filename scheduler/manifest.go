package scheduler

import (
	"context"
	"database/sql"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Sender puts messages on a bus, in the caller's transaction. *bus.Bus is one. The options are saga.WithFire, and what
// a manifest asks for. An error sends nothing; the transaction may be broken after it.
type Sender interface {
	SendTx(ctx context.Context, tx pgx.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error)
	// Database says where it sends; a schema of "" is "edda".
	Database() (pool *pgxpool.Pool, schema string)
}

// Transactor is a Sender with transactions of its own: after a commit it wakes the consumers of its messages. *bus.Bus
// is one. A Scheduler dispatches in them, at READ COMMITTED.
type Transactor interface {
	Transact(ctx context.Context, level sql.IsolationLevel, fn func(tx pgx.Tx) error) error
}

// Manifest is a stored schedule that emits a message.
type Manifest struct {
	Name    string       // unique in the schema: [a-z][a-z0-9_./-]*, at most 127 bytes
	When    When         // Cron, Every, Once, OnDemand, After or Dormant
	Message saga.Message // stored as bytes; what varies by firing is in saga.Info.Fire. It is sent as a command
	Group   string       // a group of Options.Groups or of the database; "" is none
	Expires time.Time    // nothing is due from then on; zero is never

	Misfire   Misfire       // what becomes of due times that passed unused
	MisfireBy time.Duration // a due time counts as missed when it is older; 0 is 60 s. MisfireAll does not look at it
	// with MisfireAll as many missed due times are fired at most, the last ones; 0 is 1,000, at most 1,000,000
	MisfireUp int

	Exclude []Exclusion // due times that are left out on purpose
	// a run begins up to this much later, by the same amount on every server; 0 is none, at most 24 h
	Variance time.Duration
	Overlap  bool // a run need not wait for the end of the one before it

	Timeout    time.Duration // of a run, from its dispatch; 0 is 20 min, at least 1 s; NoTimeout is none
	Retries    int           // after the first attempt; 0 is 3, -1 is none, at most 100
	RetryDelay time.Duration // before the first retry, doubling; 0 is 5 min
	RetryMost  time.Duration // where the doubling ends; 0 is 1 h, or RetryDelay if that is longer
	Priority   int           // 0 to 31; a higher one is dispatched first
	Paused     bool          // declared, and not to fire. Resume does not change that; the next declaration does
}

// NoTimeout is a Manifest.Timeout without a bound. If the message of such a run is deleted, the run stays open until an
// operator cancels it.
const NoTimeout time.Duration = 1<<63 - 1

// Misfire decides about due times that passed without a run, because no server ran, the manifest was paused, or its
// last run had not ended.
type Misfire uint8

// The policies. Due times that are not older than Manifest.MisfireBy fire under each of them, the last of them alone
// under MisfireOnce and MisfireSkip.
const (
	MisfireOnce Misfire = iota // one run, for the last due time that was missed
	MisfireSkip                // none: the next due time is the next to fire
	MisfireAll                 // one run for each, in their order, up to Manifest.MisfireUp
)

// Group bounds the runs of several manifests.
type Group struct {
	Name     string // as that of a manifest
	Max      int    // runs that are active at a time; 0 is no cap. A lower one lets those that are active end
	Strict   bool   // Max is never exceeded. Without it each server counts by itself: see Options.MaxConcurrentDispatch
	Priority int    // 0 to 31: the group is dispatched before those with a lower one
}

// Exclusion leaves due times out, in the zone of Cron, or in UTC for Every and Once. Each field that is set must match;
// a due time is left out if any Exclusion matches. It is not a misfire. Only what a clock decides can be excluded:
// Cron, Every and Once.
type Exclusion struct {
	Days []time.Weekday // any of these
	From time.Time      // dates as they are written, whose time of day and zone are not looked at: from this one
	To   time.Time      // to this one, both included; both zero is any date
	Of   Window         // a part of the day
}

// Window is a part of the day, by the wall clock: from Start until before End, over midnight when End is not after
// Start. It belongs to the day on which it starts: Friday's 22:00 to 06:00 holds 02:00 of Saturday. The zero Window is
// the whole day.
type Window struct{ Start, End TimeOfDay }

// TimeOfDay is what a wall clock shows.
type TimeOfDay struct{ Hour, Minute, Second int }
