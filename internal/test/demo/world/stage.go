package world

import (
	"context"
	_ "embed" // the statements
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Stage is a schema with a bus, whose endpoints run until Close.
type Stage struct {
	Bus    *bus.Bus
	Op     *operate.Operator
	Sagas  []*saga.Definition
	First  saga.ID // a message that has a history
	Labels saga.ID // the message that caused the labels of a batch, if there is one

	pool   *pgxpool.Pool
	schema string
	stops  map[string]func() error
	ends   []func() error // functions that Close calls too
}

func newStage(pool *pgxpool.Pool, schema string, kept history.Options) (s *Stage, err error) {
	s = &Stage{pool: pool, schema: schema, stops: map[string]func() error{}}
	s.Bus, err = bus.New(pool, bus.Options{
		Schema: schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler), History: kept,
	})
	if err != nil {
		return nil, err
	}
	s.Op, err = operate.New(pool, operate.Options{Schema: schema})
	return s, err
}

// endpoint is an endpoint that runs: plain, leased or partitioned.
type endpoint interface {
	Name() string
	Install(ctx context.Context) error
	Run(ctx context.Context) error
}

// start installs an endpoint and runs it.
func (s *Stage) start(ctx context.Context, e endpoint) error {
	if err := e.Install(ctx); err != nil {
		return err
	}
	group := run.NewGroup(context.WithoutCancel(ctx))
	group.Go(e.Run)
	s.stops[e.Name()] = func() error {
		group.Stop()
		return group.Wait()
	}
	return nil
}

func (s *Stage) stop(name string) error {
	stop := s.stops[name]
	delete(s.stops, name)
	return stop()
}

// Close ends the endpoints.
func (s *Stage) Close() (err error) {
	for name := range maps.Clone(s.stops) {
		err = errors.Join(err, s.stop(name))
	}
	for _, end := range s.ends {
		err = errors.Join(err, end())
	}
	return err
}

//go:embed worlds.sql
var statements string

// exec runs the statement called name.
func (s *Stage) exec(ctx context.Context, name string, args ...any) error {
	sql, err := s.sql(name)
	if err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// sql returns the text of the statement called name.
func (s *Stage) sql(name string) (string, error) {
	schema, err := pg.ParseSchema(s.schema)
	if err != nil {
		return "", err
	}
	return pg.Load(statements, schema).Get(name), nil
}

// install makes the queues of endpoints that no process runs, each with the kinds that it consumes.
func (s *Stage) install(ctx context.Context, endpoints map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		if err := s.Op.Queues().Install(ctx, name, endpoints[name]...); err != nil {
			return err
		}
	}
	return nil
}

// look holds the counts that a story waits for.
type look struct {
	versions     map[string]int64 // of living instances, by their keys
	ready, later map[string]int64 // messages, by endpoint
	letters      int64            // dead ones
}

func (s *Stage) look(ctx context.Context) (l look, err error) {
	l = look{versions: map[string]int64{}, ready: map[string]int64{}, later: map[string]int64{}}
	living, err := s.Op.Instances().List(ctx, persistence.ListOptions{})
	if err != nil {
		return l, err
	}
	for _, i := range living {
		l.versions[i.Instance.Key] = i.Instance.Version
	}
	infos, err := s.Op.Queues().List(ctx)
	if err != nil {
		return l, err
	}
	for _, i := range infos {
		l.ready[i.Endpoint], l.later[i.Endpoint] = i.Ready, i.Delayed
	}
	l.letters, err = s.Op.DeadLetters().Count(ctx, recoverability.LetterFilter{})
	return l, err
}

// until waits until all is as the story wants it.
func (s *Stage) until(ctx context.Context, what string, ok func(look) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("waited for: %s", what))
	defer cancel()
	for {
		l, err := s.look(ctx)
		switch {
		case err != nil:
			return errors.Join(err, context.Cause(ctx))
		case ok(l):
			return nil
		}
		if run.Sleep(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("%w, but it is %+v", context.Cause(ctx), l)
		}
	}
}
