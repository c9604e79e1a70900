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

	stock "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/examples/remote/contract"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler/remote"
	"github.com/edda-go/edda/scheduler/remote/broker"
)

const (
	every     = time.Second // a sign of life: a quarter of LostAfter in the shop
	takes     = 500 * time.Millisecond
	failing   = 10              // one try in so many
	closing   = 5 * time.Second // for what is in hand
	extension = ".txt"
)

// Name is that of the file of a report.
func Name(key string) string { return key + extension }

// Run makes reports in a directory until ctx ends. A message is acked when its report is made and reported, so that the
// broker brings it again if this process is killed. Work of many minutes is better acked at once: then the run is sent
// again when nothing was heard of it for LostAfter.
func Run(ctx context.Context, dir string, log *slog.Logger, p message.Publisher, s message.Subscriber) error {
	client := &broker.Client{Publisher: p, Topic: contract.Reports, Logger: log}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closing}, stock.NewSlogLogger(log))
	if err != nil {
		return err
	}
	//nolint:contextcheck // a message has a context of its own
	router.AddConsumerHandler("worker", contract.Runs, s, func(m *message.Message) error {
		r, err := broker.RunOf(m)
		if err != nil {
			log.Error("it is dropped", "message", m.UUID, "error", err)
			return nil
		}
		return client.Work(m.Context(), r, every, func(ctx context.Context) error {
			return makeReport(ctx, dir, m.Metadata.Get(broker.IdempotencyKey), r, m.Payload)
		})
	})
	all := run.NewGroup(ctx)
	all.Go(func(ctx context.Context) error { return router.Run(context.WithoutCancel(ctx)) })
	all.Go(func(ctx context.Context) error {
		<-ctx.Done()
		return router.Close()
	})
	return all.Wait()
}

var errPrinter = errors.New("the printer is on fire")

// makeReport is the work. It does nothing if it is done already.
func makeReport(ctx context.Context, dir, key string, r remote.Run, body []byte) error {
	var m contract.MakeReport
	if err := json.Unmarshal(body, &m); err != nil {
		return saga.Permanent(err) // no other try will be better
	}
	path := filepath.Join(dir, Name(key))
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := run.Sleep(ctx, rand.N(takes)); err != nil {
		return err
	}
	if rand.N(failing) == 0 {
		return errPrinter
	}
	part, err := os.CreateTemp(dir, "part-")
	if err == nil {
		_, err = fmt.Fprintf(part, "the report on %s, due %s, made in attempt %d\n", m.Region,
			r.Due.Format(time.RFC3339), r.Attempt)
		err = errors.Join(err, part.Close())
	}
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	return err
}
