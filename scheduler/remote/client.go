package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Client reports to a handler of NewHandler. It is safe for concurrent use if its HTTP client is.
type Client struct {
	URL    string       // where the handler is mounted
	HTTP   *http.Client // follows no redirect; nil is one with a timeout of 30 s
	Header http.Header  // sent with every request, such as Authorization
	// nil is slog.Default(). An end that was not taken is logged at Warn, before it is tried again, and so is the first
	// of a series of signs of life that were not
	Logger *slog.Logger
}

var _ Logged = (*Client)(nil)

// Beat is a sign of life: give one at least every third of scheduler.Options.LostAfter. It makes one request. ErrOver
// says that the work may stop.
func (c *Client) Beat(ctx context.Context, r Run) error {
	err := c.post(ctx, r, "beat", nil)
	if final := (*backoff.PermanentError)(nil); errors.As(err, &final) {
		return final.Err
	}
	return err
}

// End reports how the attempt ended. A nil failure is success. The run is tried again after another one while its
// manifest has retries, unless the failure is saga.Permanent. End asks again, with pauses that grow to about half a
// minute, until the report is taken, or ctx ends. ErrOver says that the attempt was over before.
func (c *Client) End(ctx context.Context, r Run, failure error) error {
	body, err := json.Marshal(reportOf(failure))
	if err != nil {
		return fmt.Errorf("end of run %s: %w", r.ID, err)
	}
	return insist(ctx, c.Log(), r.ID, r.Attempt,
		func() error { return c.post(ctx, r, "end", body) })
}

// Work does the work of a run, gives signs of life meanwhile, and reports how it ended: see the function Work.
func (c *Client) Work(ctx context.Context, r Run, every time.Duration, work func(ctx context.Context) error) error {
	return Work(ctx, c, r, every, work)
}

// Log returns the logger of the client.
func (c *Client) Log() *slog.Logger { return cmp.Or(c.Logger, slog.Default()) }

// post makes one request. An error that another try cannot cure is permanent for package backoff.
func (c *Client) post(ctx context.Context, r Run, what string, body []byte) error {
	address := fmt.Sprintf("%s/runs/%s/%d/%s", strings.TrimSuffix(c.URL, "/"), r.ID, r.Attempt, what)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("%s of run %s: %w", what, r.ID, err))
	}
	for name, values := range c.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(headers.token, r.Token)
	client := standardClient
	if c.HTTP != nil {
		client = clientOf(c.HTTP)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s of run %s: %w", what, r.ID, err)
	}
	defer answer.Body.Close()
	text := textOf(answer)
	switch code := answer.StatusCode; {
	case code == http.StatusNoContent:
		return nil
	case code == http.StatusConflict, code == http.StatusGone:
		return backoff.Permanent(fmt.Errorf("%s of run %s: %w", what, r.ID, ErrOver))
	default:
		err := fmt.Errorf("%s of run %s: %s answered %s: %s", what, r.ID, request.URL.Redacted(), answer.Status, text)
		switch code {
		case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
			return backoff.Permanent(err)
		}
		return err // also a 404 of a proxy, during a deploy
	}
}

var standardClient = clientOf(nil)
