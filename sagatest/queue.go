package sagatest

import (
	"encoding/binary"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/saga"
)

// queue holds what is due later: timeouts, and messages delivered with a delay.
type queue []saga.Delivery

// push keeps the order of due times; equal ones stay in the order they came.
func (q *queue) push(in saga.Delivery) {
	at := slices.IndexFunc(*q, func(d saga.Delivery) bool { return d.Info.Due.After(in.Info.Due) })
	if at < 0 {
		at = len(*q)
	}
	*q = slices.Insert(*q, at, in)
}

// pop takes the first that is due at now.
func (q *queue) pop(now time.Time) (in saga.Delivery, ok bool) {
	if len(*q) == 0 || (*q)[0].Info.Due.After(now) {
		return in, false
	}
	in = (*q)[0]
	*q = (*q)[1:]
	return in, true
}

// counter makes ids that count, so that a failure reads well and a transcript stays the same.
type counter uint64

func (c *counter) next() (id saga.ID) {
	*c++
	binary.BigEndian.PutUint64(id[8:], uint64(*c))
	return id
}

// recorder is the JSON codec that remembers the Go type of each kind that it wrote: what a saga sends is
// decoded for the test into the type the handler used, which no definition knows.
type recorder struct {
	mu    sync.Mutex // guards types
	types map[string]reflect.Type
}

func (r *recorder) ContentType() string { return saga.JSON.ContentType() }

func (r *recorder) Decode(b []byte, into any) error { return saga.JSON.Decode(b, into) }

func (r *recorder) Encode(m saga.Message) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.types[m.Kind()] = reflect.TypeOf(m)
	return saga.JSON.Encode(m)
}

// message decodes what was sent; what was sent as saga.Raw comes back as saga.Raw.
func (r *recorder) message(out saga.Outgoing) (saga.Message, error) {
	r.mu.Lock()
	t := r.types[out.Info.Kind]
	r.mu.Unlock()
	if t == nil {
		return saga.Raw{Name: out.Info.Kind, Body: out.Body}, nil
	}
	into := reflect.New(t)
	if err := saga.JSON.Decode(out.Body, into.Interface()); err != nil {
		return nil, err
	}
	return into.Elem().Interface().(saga.Message), nil
}
