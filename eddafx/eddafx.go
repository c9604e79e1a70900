package eddafx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"
)

// specs is the value group that endpoints are collected in.
const specs = `group:"edda.endpoints"`

const (
	drain = 30 * time.Second // the default of bus.EndpointOptions.Drain
	slack = 5 * time.Second  // for what follows the last handler
)

// Module takes a *pgxpool.Pool from the graph, and a *slog.Logger if there is one and o has none, and gives a *bus.Bus.
// It runs the endpoints of Endpoint, Partitioned and EndpointFrom: OnStart returns once all have passed their checks,
// OnStop once all have drained. A Run that fails in between shuts the app down with exit code 1.
//
// It sets fx.StopTimeout to 35 s, the default Drain and 5 s more. Endpoint and Partitioned raise it for a longer Drain;
// where several differ, or where EndpointFrom has a longer one, put fx.StopTimeout behind them yourself.
func Module(o bus.Options) fx.Option {
	return fx.Options(
		fx.StopTimeout(drain+slack),
		fx.Provide(fx.Annotate(func(pool *pgxpool.Pool, log *slog.Logger) (*bus.Bus, error) {
			if o.Logger == nil {
				o.Logger = log
			}
			return bus.New(pool, o)
		}, fx.ParamTags("", `optional:"true"`))),
		fx.Invoke(fx.Annotate(host, fx.ParamTags("", "", "", "", specs))),
	)
}

// Spec is an endpoint to be made: the arguments of bus.NewEndpoint, or, with Partitions, those of bus.NewPartitioned.
type Spec struct {
	Name       string
	Options    bus.EndpointOptions // zero with Partitions, which has its own
	Partitions *bus.PartitionOptions
	Parts      []bus.Part
}

func (s Spec) endpoint(b *bus.Bus) (edda.Runner, error) {
	if s.Partitions == nil {
		return bus.NewEndpoint(b, s.Name, s.Options, s.Parts...)
	}
	return bus.NewPartitioned(b, s.Name, *s.Partitions, s.Parts...)
}

// Endpoint adds an endpoint whose handlers need nothing from the graph.
func Endpoint(name string, o bus.EndpointOptions, parts ...bus.Part) fx.Option {
	spec := fx.Supply(fx.Annotate(Spec{Name: name, Options: o, Parts: parts}, fx.ResultTags(specs)))
	return drainedWithin(o, spec)
}

// Partitioned adds a partitioned endpoint whose handlers need nothing from the graph, see bus.NewPartitioned.
func Partitioned(name string, o bus.PartitionOptions, parts ...bus.Part) fx.Option {
	return drainedWithin(o.Endpoint, fx.Supply(
		fx.Annotate(Spec{Name: name, Partitions: &o, Parts: parts}, fx.ResultTags(specs))))
}

// drainedWithin raises fx.StopTimeout for a longer Drain.
func drainedWithin(o bus.EndpointOptions, spec fx.Option) fx.Option {
	if o.Drain <= drain {
		return spec
	}
	return fx.Options(spec, fx.StopTimeout(o.Drain+slack))
}

// EndpointFrom adds the endpoint that constructor describes: a func(deps…) Spec or a func(deps…) (Spec, error), whose
// arguments come from the graph.
func EndpointFrom(constructor any) fx.Option {
	return fx.Provide(fx.Annotate(constructor, fx.ResultTags(specs)))
}

// host ties the endpoints to the life of the app. All definitions are checked here, so that fx.New reports every
// fault of every endpoint.
func host(life fx.Lifecycle, app fx.Shutdowner, pool *pgxpool.Pool, b *bus.Bus, specs []Spec) error {
	var (
		runners []edda.Runner
		faults  []error
	)
	for _, s := range specs {
		e, err := s.endpoint(b)
		runners, faults = append(runners, e), append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if len(runners) == 0 {
		return nil // a program that only sends
	}
	h, err := edda.NewHost(pool, runners...)
	if err != nil {
		return err
	}
	r := &running{host: h, app: app}
	life.Append(fx.Hook{OnStart: r.start, OnStop: r.stop})
	return nil
}

// running is a host between OnStart and OnStop.
type running struct {
	host  *edda.Host
	app   fx.Shutdowner
	group *run.Group
	ended chan error
}

func (r *running) start(ctx context.Context) error {
	if err := r.host.Check(ctx); err != nil {
		return err
	}
	r.ended = make(chan error, 1)
	r.group = run.NewGroup(context.WithoutCancel(ctx)) // ctx ends with the start
	r.group.Go(func(ctx context.Context) error {
		err := r.host.Run(ctx)
		r.ended <- err
		if ctx.Err() == nil { // it ended by itself
			_ = r.app.Shutdown(fx.ExitCode(1)) // that this fails means that the app is stopping already
		}
		return nil
	})
	return nil
}

// stop waits for the drain. It gives up when fx does, because fx would leave then anyway.
func (r *running) stop(ctx context.Context) error {
	r.group.Stop()
	select {
	case err := <-r.ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("handlers are still running: raise fx.StopTimeout above the longest Drain: %w",
			context.Cause(ctx))
	}
}
