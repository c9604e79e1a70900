package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
)

const startWithin = 20 * time.Second // of one attempt

// asking is a client that keeps no connection, so that no goroutine outlives a question.
var asking = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// awaitWell returns when the node says of itself that it is healthy: it knows the meta leader, and each of its streams
// and consumers is current.
func (n *node) awaitWell(ctx context.Context) error {
	if err := nodes.Await(ctx, n.well); err != nil {
		// Without the answers to our own questions. A node that cannot listen says so in its log, and lives on.
		return fmt.Errorf("node %s does not come up: %w; its log ends with\n%s", n.spec.Name, err,
			nodes.LogTail(n.spec.logFile(), "Healthcheck failed"))
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
	return errors.Join(fmt.Errorf("its output is %s", said), err)
}
