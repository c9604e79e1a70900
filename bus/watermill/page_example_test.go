package watermill_test

import (
	"context"
	"encoding/json"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/jackc/pgx/v5"
)

type orderPlaced struct{ ID string }

func mail(context.Context, string) error { return nil }

// The parts of docs/guide/watermill.md that are not of a test.
func Example_page() {
	publish := func(b *bus.Bus, uuid string, payload []byte) error {
		// page publish
		publisher, err := watermill.NewPublisher(b, watermill.PublisherOptions{})
		if err != nil {
			return err
		}
		return publisher.Publish("order.place", message.NewMessage(uuid, payload))
		// end
	}
	route := func(b *bus.Bus, router *message.Router, publisher message.Publisher, write message.HandlerFunc) error {
		// page route
		subscriber, err := watermill.NewSubscriber(b, watermill.SubscriberOptions{ConsumerGroup: "letters"})
		if err != nil {
			return err
		}
		router.AddMiddleware(middleware.Recoverer, watermill.PublishWithAck)
		router.AddHandler("write", "order.paid", subscriber, "letter.written", publisher, write)
		// end
		return nil
	}
	inTx := func(publisher *watermill.Publisher, tx pgx.Tx, m *message.Message) error {
		// page tx
		return publisher.PublishTx(tx, "order.place", m)
		// end
	}
	_, _, _ = publish, route, inTx
	// Output:
}

func ExampleHandle() {
	endpoint := func(b *bus.Bus, publisher *watermill.Publisher, write message.HandlerFunc) (*bus.Endpoint, error) {
		// page endpoint
		send := func(m *message.Message) error {
			var order orderPlaced
			if err := json.Unmarshal(m.Payload, &order); err != nil {
				return err
			}
			return mail(m.Context(), order.ID)
		}
		return bus.NewEndpoint(b, "letters", bus.EndpointOptions{Concurrency: 20},
			watermill.Handle("order.paid", "letter.written", publisher, write),
			watermill.Consume("order.placed", send, middleware.NewThrottle(10, 1).Middleware))
		// end
	}
	write := func(b *bus.Bus) (*bus.Endpoint, error) {
		// page write
		count := func(m *message.Message) error {
			tx, _ := watermill.TxFromContext(m.Context())
			_, err := tx.Exec(m.Context(), "UPDATE statistics SET orders = orders + 1")
			return err
		}
		return bus.NewEndpoint(b, "statistics", bus.EndpointOptions{}, watermill.ConsumeTx("order.placed", count))
		// end
	}
	_, _ = endpoint, write
	// Output:
}

func Example_cqrs() {
	endpoint := func(b *bus.Bus, events *cqrs.EventBus, handlers ...cqrs.CommandHandler) (*bus.Endpoint, error) {
		// page cqrs
		parts := watermill.CQRSHandlers{Marshaler: watermill.NewCQRSMarshaler(), Tx: true}.Commands(handlers...)
		return bus.NewEndpoint(b, "bookings", bus.EndpointOptions{}, parts...)
		// end
	}
	_ = endpoint
	// Output:
}

func ExampleSchemaAdapter() {
	stock := func(db sql.ContextExecutor) (*sql.Publisher, error) {
		// page stock
		adapter := watermill.SchemaAdapter{Endpoint: "orders"}
		return sql.NewPublisher(db, sql.PublisherConfig{SchemaAdapter: adapter}, nil)
		// end
	}
	_ = stock
	// Output:
}
