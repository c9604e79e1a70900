package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

//go:embed floor.sql
var floorSQL string

// floor is the least a durable message can take from hand to hand: INSERT, NOTIFY and DELETE, three commits one after
// the other. Its handler is called when the DELETE has committed.
type floor struct{ tables }

func init() {
	register("floor", floor{}, Case{Workload: Latency})
}

// Work sends on one connection and receives on a second.
func (floor) Work(ctx context.Context, w *Worker) error {
	sql := statements(floorSQL, w.Schema())
	sender, err := openFloor(ctx, w, "insert", sql["insert"])
	if err != nil {
		return err
	}
	defer sender.Close(ctx)
	receiver, err := openFloor(ctx, w, "delete", sql["delete"])
	if err != nil {
		return err
	}
	defer receiver.Close(ctx)
	if _, err := receiver.Exec(ctx, "LISTEN bench_floor"); err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return floorReceive(ctx, w, receiver) })
	group.Go(func() error {
		return w.SendAll(ctx, func(ctx context.Context, m Charge) error { return floorSend(ctx, sender, m) })
	})
	return group.Wait()
}

func openFloor(ctx context.Context, w *Worker, name, sql string) (*pgx.Conn, error) {
	conn, err := connectSteady(ctx, w.DSN)
	if err != nil {
		return nil, err
	}
	_, err = conn.Prepare(ctx, name, sql)
	return conn, err
}

func floorSend(ctx context.Context, conn *pgx.Conn, m Charge) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "insert", newID(), m.Kind(), newHeader(), body); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "NOTIFY bench_floor")
	return err
}

// floorReceive deletes one message for each notification.
func floorReceive(ctx context.Context, w *Worker, conn *pgx.Conn) error {
	for range w.N {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		var body []byte
		if err := conn.QueryRow(ctx, "delete").Scan(&body); err != nil {
			return fmt.Errorf("take a message: %w", err)
		}
		var m Charge
		if err := json.Unmarshal(body, &m); err != nil {
			return err
		}
		if err := w.Handled(m); err != nil {
			return err
		}
	}
	return nil
}
