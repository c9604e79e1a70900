package watermill_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	base "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5/pgxpool"
)

// benchBus is a bus on a server that waits for the disk.
func benchBus(b *testing.B) (*bus.Bus, *pgxpool.Pool) {
	b.Helper()
	server, err := pgdev.Start(b.Context(), pgdev.Options{Private: true, Durable: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Stop() })
	pool, err := pgxpool.New(b.Context(), server.DSN())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if err := migrations.Up(b.Context(), pool, migrations.Options{}); err != nil {
		b.Fatal(err)
	}
	bench, err := bus.New(pool, bus.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return bench, pool
}

func benchPublish(b *testing.B, p message.Publisher, atOnce int) {
	b.Helper()
	messages := make([]*message.Message, atOnce)
	for b.Loop() {
		for n := range messages {
			messages[n] = message.NewMessage(base.NewUUID(), []byte(`{"Number":7}`))
		}
		if err := p.Publish("bench", messages...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*atOnce)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkPublish(b *testing.B) {
	eddas, pool := benchBus(b)
	ours, err := watermill.NewPublisher(eddas, watermill.PublisherOptions{})
	if err != nil {
		b.Fatal(err)
	}
	stock, err := sql.NewPublisher(sql.BeginnerFromPgx(pool),
		sql.PublisherConfig{SchemaAdapter: watermill.SchemaAdapter{}, AutoInitializeSchema: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, atOnce := range []int{1, 100} {
		b.Run(fmt.Sprintf("stock/%d", atOnce), func(b *testing.B) { benchPublish(b, stock, atOnce) })
		b.Run(fmt.Sprintf("ours/%d", atOnce), func(b *testing.B) { benchPublish(b, ours, atOnce) })
	}
}

func BenchmarkReceive(b *testing.B) {
	eddas, pool := benchBus(b)
	ours, err := watermill.NewSubscriber(eddas, watermill.SubscriberOptions{})
	if err != nil {
		b.Fatal(err)
	}
	stock, err := sql.NewSubscriber(sql.BeginnerFromPgx(pool), sql.SubscriberConfig{
		SchemaAdapter: watermill.SchemaAdapter{}, OffsetsAdapter: watermill.OffsetsAdapter{}, InitializeSchema: true,
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	p, err := watermill.NewPublisher(eddas, watermill.PublisherOptions{})
	if err != nil {
		b.Fatal(err)
	}
	const all = 20_000
	for name, s := range map[string]message.Subscriber{"stock": stock, "ours": ours} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if err := s.(message.SubscribeInitializer).SubscribeInitialize("bench"); err != nil {
					b.Fatal(err)
				}
				for range all / 1000 {
					if err := p.Publish("bench", numbered(1000)...); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				ctx, cancel := context.WithCancel(b.Context())
				messages, err := s.Subscribe(ctx, "bench")
				if err != nil {
					b.Fatal(err)
				}
				for range all {
					(<-messages).Ack()
				}
				cancel()
				for range messages { // until it is closed
				}
			}
			b.ReportMetric(float64(b.N*all)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}
