package sagatest

import (
	"encoding/binary"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/saga"
)

// queue has the messages that are due later: timeouts, and messages with a delay.
type queue []saga.Delivery

// push inserts in the order of due times; messages with equal times keep the order of their pushes.
func (q *queue) push(in saga.Delivery) {
	at := slices.IndexFunc(*q, func(d saga.Delivery) bool { return d.Info.Due.After(in.Info.Due) })
	if at < 0 {
		at = len(*q)
	}
	*q = slices.Insert(*q, at, in)
}

// pop removes the first message that is due at now.
func (q *queue) pop(now time.Time) (in saga.Delivery, ok bool) {
	if len(*q) == 0 || (*q)[0].Info.Due.After(now) {
		return in, false
	}
	in = (*q)[0]
	*q = (*q)[1:]
	return in, true
}

// counter makes consecutive ids, so that failures are readable and transcripts do not change.
type counter uint64

func (c *counter) next() (id saga.ID) {
	*c++
	binary.BigEndian.PutUint64(id[8:], uint64(*c))
	return id
}

// recorder is the JSON codec. It records the Go type of each kind that it encodes, so that Sent can decode a message
// into the type that the handler used.
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

// message decodes a sent message; a saga.Raw stays a saga.Raw.
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
