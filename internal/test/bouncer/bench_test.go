//go:build bouncer

package bouncer_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// BenchmarkSteps counts steps of sagas that send, with the queue filled before: directly, and through PgBouncer.
func BenchmarkSteps(b *testing.B) {
	through := ownBouncer(b, map[string]string{"server_round_robin": "0", "default_pool_size": "10"})
	for name, dsn := range map[string]string{"direct": pgdev.DSN(b), "pgbouncer": through.DSN()} {
		b.Run(name, func(b *testing.B) { benchmarkSteps(b, dsn+"&default_query_exec_mode=cache_describe") })
	}
}

func benchmarkSteps(b *testing.B, dsn string) {
	pool, schema := openPool(b, dsn), pgdev.Schema(b)
	if err := migrate.Up(b.Context(), pool, migrate.Options{Schema: schema}); err != nil {
		b.Fatal(err)
	}
	made, err := bus.New(pool, bus.Options{Schema: schema, AutoInstall: true, Wakeup: bus.PollOnly,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	operator, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		b.Fatal(err)
	}
	e, err := bus.NewEndpoint(made, "purses", bus.EndpointOptions{}, bus.Saga(purses(saga.Optimistic, "purse")))
	if err == nil {
		err = e.Install(b.Context())
	}
	if err == nil {
		err = made.InstallQueue(b.Context(), "moved", moved{}.Kind())
	}
	if err != nil {
		b.Fatal(err)
	}
	queue := pgx.Identifier{schema}.Sanitize()
	_, err = pool.Exec(b.Context(), "SELECT count(*) FROM generate_series(1, $1::int) n, LATERAL "+queue+
		".send('load.move', convert_to(format('{\"Key\":\"%s\",\"N\":%s}', n % 1000, n), 'UTF8'))", b.N)
	if err != nil {
		b.Fatal(err)
	}
	ended, look := make(chan error, 1), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	b.ResetTimer()
	go func() { ended <- e.Run(ctx) }()
	for range look.C {
		queues, err := operator.Queues().List(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		i := slices.IndexFunc(queues, func(q operate.QueueInfo) bool { return q.Endpoint == "purses" })
		if queues[i].Ready == 0 {
			break
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
