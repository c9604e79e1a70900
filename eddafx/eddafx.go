package eddafx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"
)

// The value groups of endpoints, of other runners and of changes of the options.
const (
	specs   = `group:"edda.endpoints"`
	runners = `group:"edda.runners"`
	options = `group:"edda.options"`
)

const (
	drain = 30 * time.Second // the default of bus.EndpointOptions.Drain
	slack = 5 * time.Second  // for the work after the last handler
)

// Module takes a *pgxpool.Pool from the graph, and a *slog.Logger if the graph has one and o has no Logger. It provides
// a *bus.Bus and a *scheduler.Store. It runs the endpoints of Endpoint, Partitioned and EndpointFrom, and the runners
// of Runner and Scheduler: OnStart returns once all have passed their checks, OnStop once all have ended. A Run that
// fails in between shuts the app down with exit code 1. OnStop stops waiting when a second signal comes, or when
// fx.StopTimeout is over, and returns an error.
//
// It sets fx.StopTimeout to 35 s, the default Drain and 5 s more. Endpoint and Partitioned raise it for a longer Drain.
// If several endpoints have different Drains, or if EndpointFrom or Runner has a longer one, put fx.StopTimeout behind
// them yourself.
func Module(o bus.Options) fx.Option {
	return fx.Options(
		fx.StopTimeout(drain+slack),
		fx.Provide(
			fx.Annotate(func(log *slog.Logger, changes []func(*bus.Options)) settings {
				s := settings{o}
				if s.Logger == nil {
					s.Logger = log
				}
				for _, change := range changes {
					change(&s.Options)
				}
				return s
			}, fx.ParamTags(`optional:"true"`, options)),
			func(pool *pgxpool.Pool, s settings) (*bus.Bus, error) { return bus.New(pool, s.Options) },
			func(pool *pgxpool.Pool, s settings) (*scheduler.Store, error) {
				return scheduler.NewStore(pool, scheduler.StoreOptions{Schema: s.Schema, Codec: s.Codec})
			},
		),
		fx.Invoke(host),
	)
}

// settings are the options of the module, with the logger of the graph and the changes of Configure.
type settings struct{ bus.Options }

// Configure lets f change the options of the bus before it is made: for packages that set hooks, such as
// eddaotel.Tracing.Bus. The order of several calls is not defined, so each f must keep the values that are set.
func Configure(f func(*bus.Options)) fx.Option {
	return fx.Supply(fx.Annotate(f, fx.ResultTags(options)))
}

// ConfigureFrom is Configure with the function that constructor returns: a func(deps…) func(*bus.Options), or a
// func(deps…) (func(*bus.Options), error), whose arguments come from the graph.
func ConfigureFrom(constructor any) fx.Option {
	return fx.Provide(fx.Annotate(constructor, fx.ResultTags(options)))
}

// Migrate makes the start apply missing migrations and install every queue, before the checks. It is for development
// and tests: the pool then needs the right to create tables. In production, run edda migrate before the program is
// deployed.
func Migrate() fx.Option { return fx.Supply(&migrating{}) }

type migrating struct{}

// Runner adds any other edda.Runner: a *scheduler.Singleton, a *outbox.Relay, an intake of Watermill, a loop of the
// program's own. constructor is a func(deps…) T or a func(deps…) (T, error), whose arguments come from the graph.
func Runner(constructor any) fx.Option {
	return fx.Provide(fx.Annotate(constructor, fx.As(new(edda.Runner)), fx.ResultTags(runners)))
}

// Scheduler adds a scheduler of manifests, see scheduler.New, which sends by the bus. The schema, the codec and the
// logger are those of the bus unless o sets them.
func Scheduler(o scheduler.Options, manifests ...scheduler.Manifest) fx.Option {
	return Runner(func(b *bus.Bus, s settings) (*scheduler.Scheduler, error) {
		o := o
		if o.Codec == nil {
			o.Codec = s.Codec
		}
		if o.Logger == nil {
			o.Logger = s.Logger
		}
		return scheduler.New(b, o, manifests...)
	})
}

// Publisher provides a *watermill.Publisher over the bus, also as a message.Publisher. It is closed when the app stops.
func Publisher(o watermill.PublisherOptions) fx.Option {
	return fx.Provide(fx.Annotate(
		func(b *bus.Bus) (*watermill.Publisher, error) { return watermill.NewPublisher(b, o) },
		fx.As(fx.Self()), fx.As(new(message.Publisher)),
		fx.OnStop(func(p *watermill.Publisher) error { return p.Close() }),
	))
}

// Spec describes an endpoint: the arguments of bus.NewEndpoint or, with Partitions, of bus.NewPartitioned.
type Spec struct {
	Name       string
	Options    bus.EndpointOptions // zero with Partitions, which has its own options
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

// parts has the values of the graph that host needs.
type parts struct {
	fx.In

	Pool    *pgxpool.Pool
	Bus     *bus.Bus
	Options settings
	Migrate *migrating    `optional:"true"`
	Specs   []Spec        `group:"edda.endpoints"`
	Runners []edda.Runner `group:"edda.runners"`
}

// host ties the runners to the life of the app. It makes all endpoints, so that fx.New reports every fault of every
// endpoint.
func host(life fx.Lifecycle, app fx.Shutdowner, p parts) error {
	all := p.Runners
	var faults []error
	for _, s := range p.Specs {
		e, err := s.endpoint(p.Bus)
		all, faults = append(all, e), append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	h, err := edda.NewHost(all...)
	if err != nil {
		return err
	}
	r := &running{host: h, app: app, idle: len(all) == 0}
	life.Append(fx.Hook{OnStart: func(ctx context.Context) error {
		if p.Migrate != nil {
			if err := migrations.Up(ctx, p.Pool, migrations.Options{Schema: p.Options.Schema}); err != nil {
				return err
			}
			if err := h.Install(ctx); err != nil {
				return err
			}
		}
		return r.start(ctx)
	}, OnStop: r.stop})
	return nil
}

// running is a host between OnStart and OnStop.
type running struct {
	host  *edda.Host
	app   fx.Shutdowner
	idle  bool // the program only sends
	group *run.Group
	ended chan error
}

func (r *running) start(ctx context.Context) error {
	if r.idle {
		return nil
	}
	if err := r.host.Check(ctx); err != nil {
		return err
	}
	r.ended = make(chan error, 1)
	r.group = run.NewGroup(context.WithoutCancel(ctx)) // ctx ends with the start
	r.group.Go(func(ctx context.Context) error {
		err := r.host.Run(ctx)
		r.ended <- err
		if ctx.Err() == nil { // it ended by itself
			_ = r.app.Shutdown(fx.ExitCode(1)) // an error means that the app is stopping already
		}
		return nil
	})
	return nil
}

// stop waits for the drain. It gives up at the next signal: fx takes the first signal, and would ignore later signals
// until the end. It also gives up when fx does, because fx would leave then anyway.
func (r *running) stop(ctx context.Context) error {
	if r.idle {
		return nil
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	r.group.Stop()
	select {
	case err := <-r.ended:
		return err
	case s := <-again:
		return fmt.Errorf("handlers are still running, and a second signal (%v) ended the wait for them", s)
	case <-ctx.Done():
		return fmt.Errorf("handlers are still running: raise fx.StopTimeout above the longest Drain: %w",
			context.Cause(ctx))
	}
}
