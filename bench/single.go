package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/sync/errgroup"
)

//go:embed single.sql
var singleSQL string

const singleWorkers = 8

// single is a good program written by hand with pgx: one transaction per message, with as few round trips as possible.
type single struct{ tables }

func init() {
	register("single", single{},
		Case{Workload: Step, Store: Optimistic, Share: 0.1},
		Case{Workload: Step, Store: Pessimistic, Share: 0.1},
		Case{Workload: Hot, Store: Pessimistic, Share: 0.02},
	)
}

// Work runs eight workers, each with a connection of its own, until the queue is empty.
func (single) Work(ctx context.Context, w *Worker) error {
	workers := make([]*singleWorker, singleWorkers)
	for i := range workers {
		worker, err := openSingle(ctx, w)
		if err != nil {
			return err
		}
		defer worker.conn.Close(ctx)
		workers[i] = worker
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, worker := range workers {
		group.Go(func() error { return worker.drain(ctx) })
	}
	return group.Wait()
}

// singleWorker is a connection with its statements prepared.
type singleWorker struct {
	conn *pgx.Conn
	load string
}

func openSingle(ctx context.Context, w *Worker) (*singleWorker, error) {
	conn, err := connectSteady(ctx, w.DSN)
	if err != nil {
		return nil, err
	}
	for name, sql := range statements(singleSQL, w.Schema()) {
		if _, err := conn.Prepare(ctx, name, sql); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	return &singleWorker{conn: conn, load: "load-" + w.Store}, nil
}

// connectSteady opens a connection with steadyPlans.
func connectSteady(ctx context.Context, dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	steadyPlans(&config.Config)
	return pgx.ConnectConfig(ctx, config)
}

// drain handles messages until a take finds no message. A message that a different worker still holds is left to that
// worker, which retries after a conflict.
func (s *singleWorker) drain(ctx context.Context) error {
	for {
		err := s.handle(ctx)
		if errors.Is(err, pgx.ErrNoRows) {
			_, err = s.conn.Exec(ctx, "rollback")
			return err
		}
		if err != nil {
			return err
		}
	}
}

// handle is one message in three round trips: begin and take, load, write and commit.
func (s *singleWorker) handle(ctx context.Context) error {
	m, err := s.take(ctx)
	if err != nil {
		return err
	}
	var charge Charge
	if err := json.Unmarshal(m.body, &charge); err != nil {
		return err
	}
	var in singleInstance
	row := s.conn.QueryRow(ctx, s.load, charge.Order)
	if err := row.Scan(&in.iid, &in.version, &in.state); err != nil {
		return fmt.Errorf("load %s: %w", charge.Order, err)
	}
	var state Order
	if err := json.Unmarshal(in.state, &state); err != nil {
		return err
	}
	body, err := json.Marshal(state.Apply(charge))
	if err != nil {
		return err
	}
	if in.state, err = json.Marshal(state); err != nil {
		return err
	}
	return s.write(ctx, m, in, body)
}

type singleMessage struct {
	tid          pgtype.TID
	header, body []byte
}

type singleInstance struct {
	iid     uuid.UUID
	version int64
	state   json.RawMessage
}

func (s *singleWorker) take(ctx context.Context) (singleMessage, error) {
	var m singleMessage
	var trip pgx.Batch
	trip.Queue("begin")
	trip.Queue("take").QueryRow(func(row pgx.Row) error { return row.Scan(&m.tid, &m.header, &m.body) })
	return m, s.conn.SendBatch(ctx, &trip).Close()
}

func (s *singleWorker) write(ctx context.Context, m singleMessage, in singleInstance, body []byte) error {
	var trip pgx.Batch
	trip.Queue("write", in.iid, in.version, in.state, newID(), m.header, body, m.tid)
	trip.Queue("commit")
	return s.conn.SendBatch(ctx, &trip).Close()
}
