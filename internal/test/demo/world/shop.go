package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Shop is a schema with a shop in it. Its First message placed the first order.
type Shop struct{ *Stage }

// Seed tells the story of the shop. The schema has been migrated.
func Seed(ctx context.Context, pool *pgxpool.Pool, schema string) (*Shop, error) {
	stage, err := newStage(pool, schema, history.Options{Level: history.Bodies})
	if err != nil {
		return nil, err
	}
	s := &Shop{stage}
	s.Sagas = []*saga.Definition{Orders}
	for _, name := range slices.Sorted(maps.Keys(cast())) {
		if err := s.play(ctx, name); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.tell(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// play runs an endpoint of the cast.
func (s *Stage) play(ctx context.Context, name string) error {
	e, err := cast()[name](s.Bus)
	if err != nil {
		return err
	}
	return s.start(ctx, e)
}

// tell runs the story: a good day, and then the bank is down and shipping stops.
func (s *Shop) tell(ctx context.Context) error {
	for n := 1; n <= 9; n++ {
		if err := s.place(ctx, n); err != nil {
			return err
		}
	}
	shipped := func(n int64) func(look) bool { // each has sent an invoice, and all of these are retried later
		return func(l look) bool { return len(l.versions) == 0 && l.later["erp"] == n }
	}
	if err := s.until(ctx, "nine orders are shipped", shipped(9)); err != nil {
		return err
	}
	if err := s.placeInOrder(ctx, 3); err != nil { // again: a second life
		return err
	}
	if err := s.until(ctx, "order 3 is shipped", shipped(10)); err != nil {
		return err
	}
	sent, err := s.Bus.Send(ctx, printBatch{Batch: 1, Labels: labels})
	if err != nil {
		return err
	}
	s.Labels = sent.ID
	// 60 labels (3 are dead letters), beside the mails of 5 orders
	if err := s.until(ctx, "labels are printed, and mails sent", func(l look) bool {
		return l.letters == 9 && l.ready["labels"]+l.ready["mails"] == 0
	}); err != nil {
		return err
	}
	return s.trouble(ctx)
}

// trouble makes the faults that an operator has to find.
func (s *Shop) trouble(ctx context.Context) error {
	if err := s.stop("shipping"); err != nil {
		return err
	}
	if err := s.placeInOrder(ctx, 10); err != nil { // is paid, and not shipped
		return err
	}
	err := s.until(ctx, "order 10 waits for its parcel", func(l look) bool { return l.versions[key(10)] == 3 })
	if err != nil {
		return err
	}
	if err := s.stop("payments"); err != nil { // a running endpoint may take a message before it hears of the pause
		return err
	}
	if err := s.Op.Endpoints().Pause(ctx, "payments", "the bank is down until 14:00"); err != nil {
		return err
	}
	if err := s.play(ctx, "payments"); err != nil {
		return err
	}
	for n := 11; n <= 16; n++ {
		if err := s.place(ctx, n); err != nil {
			return err
		}
		is2 := func(l look) bool { return l.versions[key(n)] == 2 }
		if err := s.until(ctx, "the stock of the order is reserved", is2); err != nil {
			return err
		}
	}
	return s.notes(ctx)
}

// notes sends the messages of order 12: a check that fails twice, and three notes in one batch.
func (s *Shop) notes(ctx context.Context) error {
	if _, err := s.Bus.Send(ctx, check{Order: key(12)}); err != nil {
		return err
	}
	is := func(version int64) func(look) bool {
		return func(l look) bool { return l.versions[key(12)] == version }
	}
	err := s.until(ctx, "order 12 is checked at the third attempt", is(3))
	if err != nil {
		return err
	}
	err = s.Bus.InTx(ctx, func(tx pgx.Tx) error { // so that they are one batch
		for _, text := range []string{"ring twice", "<script>alert(1)</script>", "leave it\u202e next door"} {
			if _, err := s.Bus.SendTx(ctx, tx, Note{Order: key(12), Text: text}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.until(ctx, "notes are taken", is(4)); err != nil {
		return err
	}
	return s.office(ctx)
}

// office makes the rows that do not belong to a message: schedules, a limit, a lease, a relay.
func (s *Shop) office(ctx context.Context) error {
	store, err := scheduler.NewStore(s.pool, scheduler.StoreOptions{Schema: s.schema})
	if err != nil {
		return err
	}
	for _, m := range []scheduler.Manifest{
		{Name: "night/settle", When: scheduler.Cron("0 3 * * *", "Europe/Berlin"),
			Message: printBatch{Batch: 2, Labels: 1}},
		{Name: "month/close", When: scheduler.Cron("30 2 1 * *", "Europe/Berlin"),
			Message: printBatch{Batch: 4, Labels: 1}},
		{Name: "hourly/rates", When: scheduler.Every(time.Hour), Message: printBatch{Batch: 3, Labels: 1}},
	} {
		if err := store.Put(ctx, m); err != nil {
			return err
		}
	}
	if err := store.Pause(ctx, "hourly/rates", "the bank sends no rates on Thursdays"); err != nil {
		return err
	}
	if _, err := store.Trigger(ctx, "night/settle", nil, scheduler.TriggerOptions{}); err != nil {
		return err
	}
	if err := s.Op.Limits().Set(ctx, "mails", 4); err != nil {
		return err
	}
	if err := s.exec(ctx, "lease"); err != nil {
		return err
	}
	return s.Op.Queues().InstallRelay(ctx, "shop.events", "order.shipped")
}

// placeInOrder places an order whose stock is reserved after it is paid.
func (s *Shop) placeInOrder(ctx context.Context, n int) error {
	if err := s.stop("stock"); err != nil {
		return err
	}
	if err := s.place(ctx, n); err != nil {
		return err
	}
	err := s.until(ctx, "the order is paid", func(l look) bool { return l.versions[key(n)] == 2 })
	if err != nil {
		return err
	}
	return s.play(ctx, "stock")
}

func key(n int) string { return fmt.Sprintf("2026-%04d", n) }

func (s *Shop) place(ctx context.Context, n int) error {
	sent, err := s.Bus.Send(ctx, place{Order: key(n), Cents: 27182800 + n, Customer: fmt.Sprintf("customer %d", n)})
	if n == 1 {
		s.First = sent.ID
	}
	return err
}
