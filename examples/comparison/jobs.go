package comparison

import (
	"context"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// page job
// Welcome requests a letter.
type Welcome struct {
	Email string `json:"email"`
}

// Kind is the name of Welcome.
func (Welcome) Kind() string { return "mail.welcome" }

// letters writes letters, 100 at a time in each process. No transaction is open while a letter is written.
func letters(b *bus.Bus, p post) (*bus.Endpoint, error) {
	policy, err := recoverability.Retries{Delayed: 24, Step: time.Second, Growth: recoverability.Exponential,
		Max: time.Hour, Jitter: recoverability.Tenth}.Policy()
	if err != nil {
		return nil, err
	}
	return bus.NewEndpoint(b, "letters", bus.EndpointOptions{Concurrency: 100, Policy: policy},
		bus.Handle(func(ctx *bus.Context, w Welcome) error {
			return p.write(ctx, ctx.Info().ID.String(), w.Email) // the id is the same on every attempt
		}))
}

// register writes a row, and requests a letter an hour later.
func register(ctx context.Context, b *bus.Bus, tx pgx.Tx, email string) error {
	if _, err := tx.Exec(ctx, "INSERT INTO member (email) VALUES ($1)", email); err != nil {
		return err
	}
	_, err := b.SendTx(ctx, tx, Welcome{Email: email}, saga.Delay(time.Hour))
	return err
}

// end

type post interface {
	write(ctx context.Context, key, email string) error
}
