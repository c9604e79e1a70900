package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/examples/remote/contract"
	"github.com/edda-go/edda/examples/remote/listen"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler/remote"
)

const (
	every     = time.Second // a sign of life: a quarter of LostAfter in the shop
	takes     = 500 * time.Millisecond
	failing   = 10 // one try in ten
	extension = ".txt"
)

// Name is that of the file of an invoice.
func Name(key string) string { return key + extension }

// Run makes invoices in a directory until ctx ends. A message is acked when its invoice is made and that is reported,
// so that the broker redelivers it if this process is killed. When ctx ends, the current work is given up, because
// the context of its message ends, and the broker redelivers it; finished work is reported. Work of many
// minutes is better acked at once: then the run is sent again if no report of it arrives for LostAfter.
func Run(ctx context.Context, dir string, log *slog.Logger, p message.Publisher,
	subscribe func() (message.Subscriber, error)) error {
	client := &remote.MessageClient{Publisher: p, Topic: contract.Runs, Logger: log}
	//nolint:contextcheck // a message has a context of its own
	return listen.Run(ctx, log, contract.Invoices, subscribe, func(m *message.Message) error {
		r, err := remote.RunOfMessage(m)
		if err != nil {
			log.Error("it is dropped", "message", m.UUID, "error", err)
			return nil
		}
		return client.Work(m.Context(), r, every, func(ctx context.Context) error {
			return makeInvoice(ctx, dir, m.Metadata.Get(remote.IdempotencyKey), r, m.Payload)
		})
	})
}

var errPrinter = errors.New("the printer is on fire")

// makeInvoice is the work. It does nothing if it is done already.
func makeInvoice(ctx context.Context, dir, key string, r remote.Run, body []byte) error {
	var m contract.MakeInvoice
	if err := json.Unmarshal(body, &m); err != nil {
		return saga.Permanent(err) // no other try will be better
	}
	path := filepath.Join(dir, Name(key))
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(rand.N(takes)):
	}
	if rand.N(failing) == 0 {
		return errPrinter
	}
	part, err := os.CreateTemp(dir, "part-")
	if err == nil {
		_, err = fmt.Fprintf(part, "an invoice to the %s, due %s, made in attempt %d\n", m.Customer,
			r.Due.Format(time.RFC3339), r.Attempt)
		err = errors.Join(err, part.Close())
	}
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	return err
}
