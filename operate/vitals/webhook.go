package vitals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	postWithin  = 10 * time.Second // one attempt
	tryFor      = time.Minute      // all attempts
	mostPause   = 15 * time.Second
	firstPause  = 500 * time.Millisecond
	mostAnswers = 64 << 10 // bytes that are read of a response
)

// alarmJSON is the body that a Webhook sends. Its names must not change.
type alarmJSON struct {
	Text      string    `json:"text"` // for chats that accept {"text": …}
	At        time.Time `json:"at"`
	Schema    string    `json:"schema"`
	State     string    `json:"state"` // "bad" or "over"
	Vital     string    `json:"vital"`
	Subject   string    `json:"subject"`
	Value     float64   `json:"value"`
	Unit      string    `json:"unit"`
	Threshold float64   `json:"threshold"`
	Sentence  string    `json:"sentence"`
	Do        string    `json:"do"`
}

// MarshalJSON returns the body that a Webhook sends.
func (a Alarm) MarshalJSON() ([]byte, error) {
	v := a.Vital
	j := alarmJSON{
		At: a.At, Schema: a.Schema, State: "bad", Vital: v.Name, Subject: v.Subject, Value: v.Value.Number,
		Unit: v.Value.Unit, Threshold: v.Threshold.Number, Sentence: v.Sentence, Do: v.Do,
	}
	j.Text = v.Sentence + " " + v.Do
	if a.Over {
		j.State, j.Text = "over", says("%s is good again.", strings.TrimSpace(v.Name+" "+v.Subject))
	}
	return json.Marshal(j)
}

// Webhook returns a function for Watch.Notify that POSTs an alarm to address as JSON, with client; a nil client is a
// new one. It retries for a minute, with growing pauses and ten seconds for each attempt. A status of 400 to 499 is
// not retried, except 408, 425 and 429. No error contains the address, which is often a secret.
func Webhook(address string, client *http.Client) func(ctx context.Context, a Alarm) error {
	if client == nil {
		client = &http.Client{}
	}
	return func(ctx context.Context, a Alarm) error {
		body, err := json.Marshal(a)
		if err != nil {
			return err
		}
		pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause),
			backoff.WithMaxInterval(mostPause), backoff.WithMaxElapsedTime(tryFor))
		last := error(nil)
		err = backoff.Retry(func() error {
			last = post(ctx, client, address, body)
			return last
		}, backoff.WithContext(pauses, ctx))
		if err != nil && last != nil && !errors.Is(last, err) { // the end of ctx hides the cause
			err = fmt.Errorf("%w: %w", err, last)
		}
		return err
	}
}

// post makes one attempt.
func post(ctx context.Context, client *http.Client, address string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, postWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(errors.New("the address of the webhook is not a URL: want https://host/path"))
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		if e := (*url.Error)(nil); errors.As(err, &e) { // its text begins with the address
			err = e.Err
		}
		return fmt.Errorf("call the webhook: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, mostAnswers) // so that the connection can be reused
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return fmt.Errorf("the webhook answered %d", code)
	case code >= 400 && code < 500:
		return backoff.Permanent(fmt.Errorf("the webhook answered %d", code))
	default:
		return fmt.Errorf("the webhook answered %d", code)
	}
}
