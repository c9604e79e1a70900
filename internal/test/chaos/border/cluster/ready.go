package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	startWithin = 20 * time.Second // of one attempt
	readyWithin = time.Minute      // of a wait whose context has no deadline
)

// asking is a client that keeps no connection, so that no goroutine outlives a question.
var asking = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// awaitWell returns when the node says of itself that it is healthy: it knows the meta leader, and each of its streams
// and consumers is current.
func (n *node) awaitWell(ctx context.Context) error {
	err := await(ctx, func(ctx context.Context) error { return n.well(ctx) })
	if err != nil {
		return fmt.Errorf("node %s does not come up: %w; its log ends with\n%s", n.spec.Name, err, n.logTail())
	}
	return nil
}

func (n *node) well(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.spec.at(n.spec.Monitor)+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := asking.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	said, err := io.ReadAll(io.LimitReader(answer.Body, 1000))
	return errors.Join(fmt.Errorf("it says %s", said), err)
}

// logTail is the end of the log without the answers to our own questions. A node that cannot listen says so here, and
// lives on.
func (n *node) logTail() string {
	text, err := os.ReadFile(n.spec.logFile())
	if err != nil {
		return err.Error()
	}
	var told []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "Healthcheck failed") {
			told = append(told, line)
		}
	}
	return strings.Join(told[max(0, len(told)-30):], "")
}

// await tries until it goes well or the time is over, and then returns the last error.
func await(ctx context.Context, try func(ctx context.Context) error) error {
	if _, ok := ctx.Deadline(); !ok {
		bounded, cancel := context.WithTimeout(ctx, readyWithin)
		defer cancel()
		ctx = bounded
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
