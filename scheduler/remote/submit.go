package remote

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/saga"
)

// SubmitOptions of a Submit. Every zero is a default.
type SubmitOptions struct {
	// Client makes the requests, and follows no redirect; nil is one with a timeout of 30 s. The timeout of a step of
	// the endpoint bounds them too.
	Client *http.Client
	// sent with every request, such as Authorization; Content-Type is application/json unless it is here
	Header http.Header
}

const (
	requestTimeout = 30 * time.Second
	mostIdle       = 100       // connections to the other side that are kept
	mostText       = 1 << 10   // of an answer, for an error
	mostRead       = 64 << 10  // of an answer, so that the connection can be used again
	mostWait       = time.Hour // for which a Retry-After is obeyed
)

// clientOf returns a client that follows no redirect: a POST would become a GET, whose success says nothing.
func clientOf(given *http.Client) *http.Client {
	c := http.Client{Timeout: requestTimeout}
	if given != nil {
		c = *given
	} else if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		own := standard.Clone()
		own.MaxIdleConnsPerHost = mostIdle
		c.Transport = own
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// textOf returns the beginning of an answer, and reads it to its end, if that is near.
func textOf(answer *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostText)) // what could be read is enough for an error
	_, _ = io.CopyN(io.Discard, answer.Body, mostRead)
	return strings.TrimSpace(string(text))
}

// Submit makes a part of an endpoint that submits the messages of a kind with POST requests to an address: the body as
// it is, and the run in headers. The endpoint is leased: Concurrency is how many are on their way at a time. A message
// that no manifest emitted is submitted too, with its id as the Idempotency-Key, and is done when the answer is a
// success.
//
// An answer of 202 leaves the run open for NewHandler, and another 2xx ends it. 408, 409 (the same submission is in
// hand), 425, 429, 5xx and no answer are failed attempts of the message, after which the policy of the endpoint
// decides; a Retry-After of seconds is obeyed, for up to an hour. Another answer, a redirect included, is a permanent
// failure.
func Submit(kind, address string, o SubmitOptions) bus.Part {
	u, err := url.Parse(address)
	if err == nil && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		err = fmt.Errorf("want a URL with http or https, and a host")
	}
	if err != nil {
		return bus.InvalidPart(fmt.Errorf("submit %s to %.200q: %w", kind, address, err))
	}
	o.Client = clientOf(o.Client)
	s := submitter{address: address, options: o}
	return bus.Handle(s.submit, bus.OfKind(kind))
}

type submitter struct {
	address string
	options SubmitOptions
}

func (s submitter) submit(ctx *bus.Context, m saga.Raw) error {
	info := ctx.Info()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(m.Body))
	if err != nil {
		return saga.Permanent(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name, values := range s.options.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	if info.Firing != nil {
		request.Header.Set(headerKey, info.Firing.Run.String())
		headers.write(request.Header.Set, info.Firing, wire.Token(ctx, info.Firing))
	} else {
		request.Header.Set(headerKey, info.ID.String())
	}
	answer, err := s.options.Client.Do(request)
	if err != nil {
		return fmt.Errorf("submit %s: %w", info.Kind, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusAccepted {
		ctx.LeaveRun()
	}
	return judge(answer)
}

// judge returns the failure that an answer is, nil for a success.
func judge(answer *http.Response) error {
	text, code := textOf(answer), answer.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	err := fmt.Errorf("%s answered %s: %s", answer.Request.URL.Host, answer.Status, text)
	switch {
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooEarly,
		code == http.StatusTooManyRequests:
		if seconds, wrong := strconv.Atoi(answer.Header.Get("Retry-After")); wrong == nil && seconds > 0 {
			return saga.RetryAfter(time.Duration(min(seconds, int(mostWait/time.Second)))*time.Second, err)
		}
		return err
	}
	return saga.Permanent(err)
}
