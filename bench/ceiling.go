package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

//go:embed ceiling.sql
var ceilingSQL string

const (
	ceilingWorkers = 3   // on the step workload: two processors are busy while one worker waits for its commit
	ceilingBatch   = 500 // messages per transaction
)

// ceiling is the fastest batch we could write by hand. A correct engine is compared with it.
// It is right only because nothing else touches its tables.
type ceiling struct{ tables }

func init() {
	register("ceiling", ceiling{},
		Case{Workload: Step},
		Case{Workload: Hot, Processes: 1},
		Case{Workload: Hot, Processes: 2},
	)
	registerKept("ceiling", "")
}

// Work runs the batches of one process.
func (ceiling) Work(ctx context.Context, w *Worker) error {
	workers := ceilingWorkers
	if w.Workload == Hot {
		workers = 1 // the instance is one: a second worker would wait for the first
	}
	batches := make([]*batch, workers)
	at := newCursor()
	var left atomic.Int64
	left.Store(int64(w.N))
	for i := range batches {
		b, err := openBatch(ctx, w, at)
		if err != nil {
			return err
		}
		defer b.conn.Close(ctx)
		if w.Kept() {
			b.left = &left
		}
		batches[i] = b
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, b := range batches {
		group.Go(func() error { return b.drain(ctx) })
	}
	return group.Wait()
}

// cursor is the position of the last message that the workers of a process took. They skip messages of busy instances,
// and take them after a take finds no message and the cursor returns to the start.
type cursor struct {
	mu  sync.Mutex // guards due and id
	due [8]byte
	id  [16]byte
}

func newCursor() *cursor {
	c := &cursor{}
	c.rewind()
	return c
}

// rewind puts the cursor before the first message: -infinity is the smallest int64.
func (c *cursor) rewind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := int64(math.MinInt64)
	binary.BigEndian.PutUint64(c.due[:], uint64(first))
	c.id = [16]byte{}
}

func (c *cursor) get() (due [8]byte, id [16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.due, c.id
}

func (c *cursor) set(due [8]byte, id [16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due, c.id = due, id
}
