package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The messages. Activity is published, the others are sent by the saga.
type (
	activity struct { // a row of the log
		Case, Name string
		Line       int
		At         time.Time
		Deadline   time.Time
	}
	deadline struct{} // the timer of a case
	filed    struct { // the saga has taken an activity
		Case, Name string
		Line       int
		At         time.Time
	}
	overdue struct { // the timer of a case has fired
		Case  string
		Fired time.Time // by the database's clock
	}
)

func (activity) Kind() string { return "permit.activity" }
func (deadline) Kind() string { return "permit.deadline" }
func (filed) Kind() string    { return "permit.filed" }
func (overdue) Kind() string  { return "permit.overdue" }

// idSpace keeps the ids of this program apart from those of others.
var idSpace = uuid.MustParse("6d0f1f57-7f3c-4a52-9b6b-5c3f5b1f0c11")

// id is the same for the same row of the same case, so that publishing it again publishes nothing.
func (e event) id() saga.ID {
	name := e.Case + "\x00" + strconv.Itoa(e.Line)
	return saga.ID(uuid.NewSHA1(idSpace, []byte(name)))
}

func (e event) message() activity {
	return activity{Case: e.Case, Name: e.Activity, Line: e.Line, At: e.At, Deadline: e.Deadline}
}

// sagaName is how the saga's instances are found in the database.
const sagaName = "permit"

// dossier is the state of one case. Activities arrive in any order: workers overtake each other, and what a killed
// worker had in hand comes again later.
type dossier struct {
	Last  lastActivity
	Lines []int // of the activities taken, in the order in which they came
	Again int   // activities that came although they had been taken
	Fired int   // how often the timer did
}

// lastActivity is the last one by event time, and of two at one time the one further down in the log.
type lastActivity struct {
	Name string
	At   time.Time
	Line int
}

func (l lastActivity) before(m activity) bool {
	return l.At.Before(m.At) || l.At.Equal(m.At) && l.Line < m.Line
}

// define makes the saga. It never completes: an activity may come after the deadline, and the outcome is read from
// the living instances.
func define(p *pace) *saga.Definition {
	take := func(d *dossier, ctx *saga.Context, m activity) error {
		d.take(m)
		if len(d.Lines) == 1 && d.Again == 0 {
			ctx.TimeoutAt(p.at(m.Deadline), deadline{}, saga.Named("deadline"))
		}
		ctx.Send(filed{Case: m.Case, Name: m.Name, Line: m.Line, At: m.At})
		return nil
	}
	return saga.Define(sagaName, saga.Options{},
		saga.StartedBy(func(m activity) string { return m.Case }, take),
		saga.OnTimeout((*dossier).expire),
	)
}

func (d *dossier) take(m activity) {
	if slices.Contains(d.Lines, m.Line) {
		d.Again++
		return
	}
	d.Lines = append(d.Lines, m.Line)
	if d.Last.before(m) {
		d.Last = lastActivity{Name: m.Name, At: m.At, Line: m.Line}
	}
}

func (d *dossier) expire(ctx *saga.Context, _ deadline) error {
	d.Fired++
	ctx.Send(overdue{Case: ctx.Key(), Fired: ctx.Now()})
	return nil
}

// filed and overdue write what the saga did into tables of our own: a saga has no transaction to write with. Neither
// table has a unique constraint, so that what happens twice shows as two rows.
func (p *player) filed(ctx *bus.Context, tx pgx.Tx, m filed) error {
	_, err := tx.Exec(ctx, p.sql["record_effect"], m.Case, m.Line, m.Name, m.At)
	return err
}

func (p *player) overdue(ctx *bus.Context, tx pgx.Tx, m overdue) error {
	_, err := tx.Exec(ctx, p.sql["record_firing"], m.Case, m.Fired)
	return err
}

// pace turns times of the log into times of the run: from the first event to the last takes Lasting.
type pace struct {
	Begun       time.Time // by the database's clock
	Lasting     time.Duration
	First, Last time.Time // of the log
}

// at is when what stands at t in the log happens in the run. What lies before the first event is due at once; what lies
// after the last event is due at the end of the run.
func (p pace) at(t time.Time) time.Time {
	if t.Before(p.First) {
		t = p.First
	} else if t.After(p.Last) {
		t = p.Last
	}
	whole := p.Last.Sub(p.First)
	if whole <= 0 {
		return p.Begun
	}
	part := time.Duration(float64(p.Lasting) * (float64(t.Sub(p.First)) / float64(whole)))
	return p.Begun.Add(part).Truncate(time.Microsecond)
}
