package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// warm messages come before the measured ones.
const warm, measured = 20, 15

type (
	command  struct{ Key string }
	follower struct{ Key string }
	state    struct{ Steps int }
)

func (command) Kind() string  { return "journey.command" }
func (follower) Kind() string { return "journey.follower" }

func main() {
	if len(os.Args) != 3 {
		log.Fatal("want a mode (saga, leased or run) and a folder")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// journey is a program with one endpoint.
type journey struct {
	mode    string
	bus     *bus.Bus
	store   *scheduler.Store
	handled chan struct{} // after the transaction of a message
}

func run(ctx context.Context, mode, dir string) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool, migrations.Options{Schema: mode}); err != nil {
		return err
	}
	j := &journey{mode: mode, handled: make(chan struct{}, 1)}
	host, err := j.host(ctx, pool)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- host.Run(working) }()
	if err := j.travel(ctx, dir, ended); err != nil {
		return err
	}
	stop()
	return <-ended
}

func (j *journey) host(ctx context.Context, pool *pgxpool.Pool) (*edda.Host, error) {
	step := func(s *state, ctx *saga.Context, m command) error {
		s.Steps++
		ctx.Send(follower(m), saga.To("followers"))
		return nil
	}
	parts := map[string]bus.Part{
		"saga": bus.Saga(saga.Define("journey", saga.Options{},
			saga.StartedBy(func(m command) string { return m.Key }, step))),
		"leased": bus.Handle(func(*bus.Context, command) error { return nil }),
	}
	parts["run"] = parts["saga"]
	var err1, err3 error
	j.bus, err1 = bus.New(pool, bus.Options{Schema: j.mode, AutoInstall: true, Events: j.saw})
	if err1 != nil || parts[j.mode] == nil {
		return nil, cmp.Or(err1, fmt.Errorf("no mode %q", j.mode))
	}
	travels, err1 := bus.NewEndpoint(j.bus, "travels", bus.EndpointOptions{}, parts[j.mode])
	clock, err2 := scheduler.New(j.bus, scheduler.Options{Owner: "journey"})
	j.store, err3 = scheduler.NewStore(pool, scheduler.StoreOptions{Schema: j.mode})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	runners := []edda.Runner{travels}
	if j.mode == "run" {
		runners = append(runners, clock) // whose loops run beside the message
	}
	host, err1 := edda.NewHost(runners...)
	return host, errors.Join(err1, travels.Install(ctx), j.bus.InstallQueue(ctx, "followers"),
		j.store.Put(ctx, scheduler.Manifest{Name: "journey", When: scheduler.OnDemand(), Message: command{}}))
}

func (j *journey) saw(e event.Event) {
	if done, ok := e.(event.BatchDone); ok && done.Endpoint == "travels" {
		j.handled <- struct{}{}
	}
}

// travel sends a message at a time. Of each of the last ones it writes which lines ran.
func (j *journey) travel(ctx context.Context, dir string, ended <-chan error) error {
	for n := range warm + measured {
		if n >= warm {
			if err := coverage.ClearCounters(); err != nil {
				return err
			}
		}
		if err := j.send(ctx, n); err != nil {
			return err
		}
		select {
		case <-j.handled:
		case err := <-ended:
			return fmt.Errorf("the endpoint ended early: %w", err)
		case <-time.After(time.Minute):
			return errors.New("no message was handled within a minute")
		}
		if n >= warm {
			if err := write(filepath.Join(dir, strconv.Itoa(n-warm))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *journey) send(ctx context.Context, n int) error {
	if j.mode == "run" {
		_, err := j.store.Trigger(ctx, "journey", command{Key: strconv.Itoa(n)}, scheduler.TriggerOptions{})
		return err
	}
	_, err := j.bus.Send(ctx, command{Key: "warm"}, saga.To("travels"))
	return err
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir))
}
