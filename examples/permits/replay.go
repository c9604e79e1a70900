package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
)

var (
	errDifferent   = errors.New("the outcome is not what the log says")
	errInterrupted = errors.New("interrupted: nothing was checked")
)

// replay runs the log through the workers and checks the outcome.
func replay(ctx context.Context, s settings) (err error) {
	l, err := readLog(s.log)
	if err != nil {
		return err
	}
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	db, err := openDatabase(ctx, server.DSN(), s.schema)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	isNew, err := db.prepare(ctx)
	if err == nil {
		err = stage(ctx, s, db, l)
	}
	err = errors.Join(err, leave(ctx, s, db, isNew && !errors.Is(err, errDifferent)))
	if ctx.Err() != nil && !s.keep {
		return errInterrupted
	}
	return err
}

// stage runs the workers until every event and every deadline has passed, and then judges.
func stage(ctx context.Context, s settings, db *database, l *eventLog) error {
	b, err := install(ctx, s, db)
	if err != nil {
		return err
	}
	r, err := db.begin(ctx, s, l)
	if err != nil {
		return err
	}
	if err := perform(ctx, s, &play{database: db, log: l, found: r, bus: b}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return report(ctx, s, db, l)
}

// install makes the queues, so that the first event finds its subscriber. The bus is then the feed's.
func install(ctx context.Context, s settings, db *database) (*bus.Bus, error) {
	w := worker{Schema: s.schema, Store: s.sagaStore()}
	b, endpoints, err := w.endpoints(db.pool)
	if err != nil {
		return nil, err
	}
	for _, e := range endpoints {
		if err := e.Install(ctx); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// play is what the members of a run share.
type play struct {
	*database
	log   *eventLog
	found found
	bus   *bus.Bus
}

// perform runs the workers, the feed, the killer and the narrator, until all is done or one of them fails.
func perform(ctx context.Context, s settings, p *play) error {
	done, err := p.killsDone(ctx)
	if err != nil {
		return err
	}
	here := time.Now()
	ahead := p.found.now.Sub(here)
	random := rand.New(rand.NewPCG(s.seed, 0))
	moments := momentsOf(random, p.found.begun.Add(-ahead), p.found.lasting, p.found.kills)
	pace := p.found.pace(p.log)
	spec := worker{DSN: p.pool.Config().ConnString(), Schema: s.schema, Store: s.sagaStore(), Pace: pace}
	workers := procs.NewWorkers(s.workers, spec.job, procs.Options{}) // whoever is killed is replaced at once
	events := &feed{bus: p.bus, events: p.log.Events, pace: pace, ahead: ahead}
	deaths := &killer{database: p.database, crew: workers, random: random, moments: moments[min(done, len(moments)):]}
	story := &narrator{database: p.database, crew: workers, feed: events, out: os.Stderr, begin: here}
	story.open(s, p)

	all := run.NewGroup(ctx)
	all.Go(workers.Run)
	all.Go(deaths.run)
	all.Go(story.run)
	all.Go(func(ctx context.Context) error {
		if err := events.run(ctx); err != nil {
			return err
		}
		err := story.quiet(ctx)
		all.Stop()
		return err
	})
	return all.Wait()
}

// report judges the run, and prints the line and the table.
func report(ctx context.Context, s settings, db *database, l *eventLog) error {
	r, err := db.readRun(ctx, l)
	if err != nil {
		return err
	}
	v, err := db.judge(ctx, l, r.pace(l))
	if err != nil {
		return err
	}
	fmt.Println(v)
	if s.all {
		err = printCases(os.Stdout, v.dossiers)
	} else {
		err = printActivities(os.Stdout, v.dossiers)
	}
	if err == nil && s.cases != "" {
		err = writeCases(s.cases, v.dossiers)
	}
	if len(v.differences) > 0 {
		v.tell(os.Stdout)
		err = errors.Join(err, errDifferent)
	}
	return err
}

// verify checks a run that was kept.
func verify(ctx context.Context, s settings) error {
	l, err := readLog(s.log)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, os.Getenv("DATABASE_URL"), s.schema)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	return report(ctx, s, db, l)
}

// leave keeps the tables, or removes those that this process has made. What is different from the log is kept for
// somebody to look at, where the server outlives us.
func leave(ctx context.Context, s settings, db *database, remove bool) error {
	lent := os.Getenv("DATABASE_URL") != ""
	switch {
	case s.keep && lent:
		_, _ = fmt.Fprintf(os.Stderr, "Kept in the schemas %s and %s. Verify, with DATABASE_URL as it is:\n  %s\n",
			s.schema, engineSchema(s.schema), verifyCommand(s))
	case s.keep && ctx.Err() == nil:
		_, _ = fmt.Fprintf(os.Stderr, "The server waits until Ctrl-C. Verify from another terminal:\n  "+
			"DATABASE_URL='%s' \\\n  %s\n",
			db.pool.Config().ConnString(), verifyCommand(s))
		<-ctx.Done()
	case lent && remove:
		return db.drop(context.WithoutCancel(ctx))
	case lent:
		_, _ = fmt.Fprintf(os.Stderr, "Left in the schemas %s and %s. To begin anew, drop both or name another "+
			"-schema.\n", s.schema, engineSchema(s.schema))
	}
	return nil
}

func verifyCommand(s settings) string {
	return fmt.Sprintf("go run ./examples/permits -verify -schema '%s' -log '%s'", s.schema, s.log)
}
