package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// batch is one worker of the ceiling: a connection and buffers that live as long as it does.
type batch struct {
	conn *pgconn.PgConn
	at   *cursor
	hot  bool
	load string        // load-skip, or load-wait for the one hot instance
	left *atomic.Int64 // messages until the workers end; nil is until the queue is empty

	messages  []message
	headers   []byte // the headers of the batch, one behind the other
	instances []*instance
	byKey     map[string]*instance

	keys, tids, states      array
	ids, headersOut, bodies array
	done                    array
}

// message is one taken row; its body is decoded as it arrives.
type message struct {
	tid    [6]byte
	header [2]int // where in batch.headers
	charge Charge
}

// instance is an order of the batch: several messages share one load and one save.
type instance struct {
	tid    [6]byte
	loaded bool
	state  []byte
	order  Order
}

func openBatch(ctx context.Context, w *Worker, at *cursor) (*batch, error) {
	config, err := pgconn.ParseConfig(w.DSN)
	if err != nil {
		return nil, err
	}
	steadyPlans(config)
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	for name, sql := range statements(ceilingSQL, w.Schema()) {
		if _, err := conn.Prepare(ctx, name, sql, nil); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	b := &batch{conn: conn, at: at, hot: w.Workload == Hot, load: "load-skip", byKey: map[string]*instance{}}
	if b.hot {
		b.load = "load-wait"
	}
	return b, nil
}

// steadyPlans makes a connection plan each statement once, and by index whatever the statistics say.
func steadyPlans(config *pgconn.Config) {
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	// a disabled plan type counts as expensive, and Postgres compiles expensive plans
	config.RuntimeParams["jit"] = "off"
	for _, name := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan"} {
		config.RuntimeParams[name] = "off"
	}
}

// drain handles batches until a take from the very beginning finds nothing, or the workers have done enough.
func (b *batch) drain(ctx context.Context) error {
	for rewound := false; ; {
		n, err := b.run(ctx)
		if err != nil {
			return err
		}
		if n == 0 && rewound || b.left != nil && b.left.Add(-int64(b.done.count)) <= 0 {
			return nil
		}
		if rewound = n == 0; rewound {
			b.at.rewind()
		}
	}
}

// run is one batch in three round trips: take, load, write.
func (b *batch) run(ctx context.Context) (int, error) {
	p := b.conn.StartPipeline(ctx)
	err := b.take(p)
	if err == nil {
		err = b.loadInstances(p)
	}
	if err == nil {
		err = b.step()
	}
	if err == nil {
		err = b.write(p)
	}
	return len(b.messages), errors.Join(err, p.Close())
}

var binaryFormat = []int16{1}

func (b *batch) take(p *pgconn.Pipeline) error {
	b.messages, b.headers = b.messages[:0], b.headers[:0]
	due, id := b.at.get()
	limit := binary.BigEndian.AppendUint64(nil, ceilingBatch)
	p.SendQueryParams("begin", nil, nil, nil, nil)
	p.SendQueryPrepared("take", [][]byte{due[:], id[:], limit}, binaryFormat, binaryFormat)
	if err := p.Sync(); err != nil {
		return err
	}
	err := results(p, 2, func(row [][]byte) error {
		m := message{tid: [6]byte(row[0])}
		due, id = [8]byte(row[1]), [16]byte(row[2])
		m.header[0] = len(b.headers)
		b.headers = append(b.headers, row[4]...)
		m.header[1] = len(b.headers)
		err := json.Unmarshal(row[5], &m.charge)
		b.messages = append(b.messages, m)
		return err
	})
	if len(b.messages) > 0 {
		b.at.set(due, id)
	}
	return err
}

func (b *batch) loadInstances(p *pgconn.Pipeline) error {
	b.instances = b.instances[:0]
	clear(b.byKey)
	b.keys.reset(oidText)
	for i := range b.messages {
		key := b.messages[i].charge.Order
		if b.byKey[key] == nil {
			in := &instance{}
			b.byKey[key] = in
			b.instances = append(b.instances, in)
			b.keys.add([]byte(key))
		}
	}
	p.SendQueryPrepared(b.load, [][]byte{b.keys.bytes()}, binaryFormat, binaryFormat)
	if err := p.Sync(); err != nil {
		return err
	}
	return results(p, 1, func(row [][]byte) error {
		in := b.instances[binary.BigEndian.Uint64(row[0])-1]
		in.tid, in.loaded = [6]byte(row[1]), true
		if b.hot {
			return json.Unmarshal(row[2], &in.order)
		}
		in.state = append([]byte(nil), row[2]...)
		return nil
	})
}

// step applies each message to its instance and fills the parameters of the write.
func (b *batch) step() error {
	b.ids.reset(oidUUID)
	b.headersOut.reset(oidBytea)
	b.bodies.reset(oidBytea)
	b.done.reset(oidTID)
	for i := range b.messages {
		m := &b.messages[i]
		in := b.byKey[m.charge.Order]
		if !in.loaded {
			continue // busy: the message stays in the queue
		}
		body, err := in.apply(m.charge, b.hot)
		if err != nil {
			return err
		}
		id := newID()
		b.ids.add(id[:])
		b.headersOut.add(b.headers[m.header[0]:m.header[1]])
		b.bodies.add(body)
		b.done.add(m.tid[:])
	}
	return nil
}

// apply decodes the state, changes it and encodes it again, for each message. The hot instance is decoded once.
func (in *instance) apply(m Charge, hot bool) (body []byte, err error) {
	if hot {
		return json.Marshal(in.order.Apply(m))
	}
	var order Order
	if err := json.Unmarshal(in.state, &order); err != nil {
		return nil, err
	}
	charged := order.Apply(m)
	if in.state, err = json.Marshal(order); err != nil {
		return nil, err
	}
	return json.Marshal(charged)
}

// write sends everything and COMMIT in one trip.
func (b *batch) write(p *pgconn.Pipeline) error {
	b.tids.reset(oidTID)
	b.states.reset(oidJSON)
	for _, in := range b.instances {
		if !in.loaded {
			continue
		}
		if b.hot {
			var err error
			if in.state, err = json.Marshal(in.order); err != nil {
				return err
			}
		}
		b.tids.add(in.tid[:])
		b.states.add(in.state)
	}
	p.SendQueryPrepared("save", [][]byte{b.tids.bytes(), b.states.bytes()}, binaryFormat, nil)
	p.SendQueryPrepared("send", [][]byte{b.ids.bytes(), b.headersOut.bytes(), b.bodies.bytes()}, binaryFormat, nil)
	p.SendQueryPrepared("delete", [][]byte{b.done.bytes()}, binaryFormat, nil)
	p.SendQueryParams("commit", nil, nil, nil, nil)
	if err := p.Sync(); err != nil {
		return err
	}
	return results(p, 4, nil)
}

// results reads the answers to n statements and their Sync; row is called for each row of them.
func results(p *pgconn.Pipeline, n int, row func([][]byte) error) error {
	for range n + 1 {
		answer, err := p.GetResults()
		if err != nil {
			return err
		}
		reader, isRows := answer.(*pgconn.ResultReader)
		if !isRows {
			continue
		}
		for reader.NextRow() {
			if err := row(reader.Values()); err != nil {
				return err
			}
		}
		if _, err := reader.Close(); err != nil {
			return err
		}
	}
	return nil
}

// The object ids of the element types the ceiling sends.
const (
	oidBytea = 17
	oidText  = 25
	oidTID   = 27
	oidJSON  = 114
	oidUUID  = 2950
)

// array builds the binary form of a one-dimensional Postgres array in place: no reflection, and no
// garbage once it has grown. A peer that must be hard to beat cannot afford less.
type array struct {
	buf   []byte
	count uint32
}

const arrayHeader = 20 // dimensions, null flag, element type, length, lower bound

// reset empties the array and names its element type.
func (a *array) reset(oid uint32) {
	a.buf = append(a.buf[:0], 0, 0, 0, 1, 0, 0, 0, 0)
	a.buf = binary.BigEndian.AppendUint32(a.buf, oid)
	a.buf = append(a.buf, 0, 0, 0, 0, 0, 0, 0, 1)
	a.count = 0
}

// add appends one element in its own binary form.
func (a *array) add(element []byte) {
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(element)))
	a.buf = append(a.buf, element...)
	a.count++
}

// bytes is the finished parameter, valid until the next reset.
func (a *array) bytes() []byte {
	binary.BigEndian.PutUint32(a.buf[arrayHeader-8:], a.count)
	return a.buf
}
