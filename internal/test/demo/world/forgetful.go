package world

import (
	"context"
	"errors"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Forgetful makes a schema whose endpoints keep no history: three orders wait for a payment that no endpoint handles.
func Forgetful(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{Level: history.Off})
	if err != nil {
		return nil, err
	}
	s.Sagas = []*saga.Definition{Orders}
	return s, errors.Join(err, s.forget(ctx))
}

func (s *Stage) forget(ctx context.Context) error {
	err := s.install(ctx, map[string][]string{
		"payments": {charge{}.Kind()}, "stock": {reserve{}.Kind()}, "shipping": {ship{}.Kind()},
		"mails": {mailed{}.Kind()}, "erp": {export{}.Kind()},
	})
	if err != nil {
		return err
	}
	orders, err := bus.NewEndpoint(s.Bus, "orders", bus.EndpointOptions{Concurrency: 1}, bus.Saga(Orders))
	if err != nil {
		return err
	}
	if err := s.start(ctx, orders); err != nil {
		return err
	}
	for n := 1; n <= 3; n++ {
		sent, err := s.Bus.Send(ctx, place{Order: key(n), Cents: 27182800 + n, Customer: "customer"})
		if err != nil {
			return errors.Join(err, s.Close())
		}
		s.First = sent.ID
	}
	err = s.until(ctx, "three orders live", func(l look) bool { return len(l.versions) == 3 })
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}
