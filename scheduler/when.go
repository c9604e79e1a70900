package scheduler

import (
	"time"

	"github.com/edda-go/edda/internal/base/plan"
)

// When decides when a manifest is due. It is sealed: Cron, Every, Once, OnDemand, After and Dormant make one.
type When interface{ rule() plan.Rule }

type when struct{ plan.Rule }

func (w when) rule() plan.Rule { return w.Rule }

// Cron is due when the wall clock of zone matches expr: five fields (minute, hour, day of month, month, weekday), six
// with the seconds first, or a name like @daily. If both the day of the month and the weekday are restricted, a day
// need match only one. The zone is an IANA name such as Europe/Berlin, or UTC.
//
// One rule holds when the clock is changed: a matching time is due when the clock first shows it or a later time.
//
//   - Clocks go forward, 02:00 becomes 03:00: times in between are due at 03:00, as one due time, together with 03:00
//     if that matches too. So 02:30 each day is due each day. If a whole date is skipped, its times are due as the
//     next date begins.
//   - Clocks go back, 03:00 becomes 02:00: times in between are due the first time and not again. So 02:30 each day is
//     due once, and an expression for each 5 minutes pauses for that hour. Use [Every] for work that must continue by
//     elapsed time.
//
// The first due time is the first match after the declaration.
func Cron(expr, zone string) When { return when{plan.Rule{Kind: plan.Cron, Expr: expr, Zone: zone}} }

// Every is due at once when it is first declared, and then every d of elapsed time; d is 1 s to ten years. A run that
// begins late does not shift the due times.
func Every(d time.Duration) When { return when{plan.Rule{Kind: plan.Every, Every: d}} }

// Once is due at t, one time. If t has passed, it is a missed due time: Manifest.Misfire decides.
func Once(t time.Time) When { return when{plan.Rule{Kind: plan.Once, At: t}} }

// OnDemand is due only when Store.Trigger is called.
func OnDemand() When { return when{plan.Rule{Kind: plan.OnDemand}} }

// After is due each time a run of the given manifest succeeds.
func After(manifest string) When { return when{plan.Rule{Kind: plan.After, Parent: manifest}} }

// Dormant is due only when a handler of a run of parent activates it, with Store.Activate.
func Dormant(parent string) When { return when{plan.Rule{Kind: plan.Dormant, Parent: parent}} }
