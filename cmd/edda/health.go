package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/migrations"
	"github.com/spf13/cobra"
)

const (
	probeTimeout = 5 * time.Second // of healthcheck, unless a flag sets it
	mostHealth   = 1 << 20         // bytes of a response
)

// probes checks the health of a program or of the database.
type probes struct{ *tool }

// command is a probe for containers without curl or a shell.
func (t probes) command() *cobra.Command {
	return &cobra.Command{
		Use: "healthcheck [URL]", Short: "Check whether a program, or the database, is healthy",
		Long: `Check whether a program is healthy: URL is an address of edda.HealthHandler, and a healthy program
answers 200. Without a URL the command checks the database: it is healthy if it answers and its schema fits this
program. The exit code is 0 if it is healthy and 1 if not, as a container's HEALTHCHECK and exec probes expect. The
command follows no redirects and uses no proxy. It gives up after five seconds, or after --timeout.`,
		Example: `  edda healthcheck http://localhost:8080/health/ready
  edda healthcheck --timeout 2s http://localhost:8080/health/live
  edda healthcheck --database postgres://db1/shop`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("timeout") {
				t.timeout = probeTimeout
			}
			if len(args) == 0 {
				return t.askDatabase(c.Context())
			}
			at, err := url.Parse(args[0])
			if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
				return usage(c, errors.New("want a URL such as http://localhost:8080/health/ready"))
			}
			return t.askProgram(c.Context(), at)
		},
	}
}

// askDatabase reports that the database is healthy, or returns the reason why not.
func (t probes) askDatabase(ctx context.Context) error {
	ctx, err := t.connect(ctx, t.timeout)
	if err == nil {
		var status []migrations.Migration
		if status, err = migrations.Status(ctx, t.pool, migrations.Options{Schema: t.schemaName()}); err == nil {
			err = t.fits(status)
		}
	}
	return t.verdict(ctx, err, "the database", view.Object{"asked", "database", "status", nil, "health", nil})
}

// askProgram reports that a program is healthy, or returns the reason why not.
func (t probes) askProgram(ctx context.Context, at *url.URL) error {
	if t.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.timeout, fmt.Errorf("%w of %v", errTimeout, t.timeout))
		defer cancel()
	}
	status, health, err := get(ctx, at)
	return t.verdict(ctx, err, at.Redacted(),
		view.Object{"asked", at.Redacted(), "status", status, "health", health})
}

// get returns the status of a response, nil without a response, and its body if that is JSON. The error is the reason.
func get(ctx context.Context, at *url.URL) (status *int, health json.RawMessage, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostHealth))
	if json.Valid(body) {
		health = body
	} else {
		health = json.RawMessage("null")
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", at.Redacted(), answer.Status, body)
	}
	return &answer.StatusCode, health, err
}

// verdict prints whether the subject is healthy, and returns the reason why not.
func (t probes) verdict(ctx context.Context, err error, name string, asked view.Object) error {
	says := ""
	if err != nil {
		err = causeOf(ctx, err)
		says = redacted(err, t.database)
	}
	v := lineOf(append(view.Object{"healthy", err == nil, "error", says}, asked...), "healthy: %s", name)
	if err != nil && !t.json {
		return err
	}
	return errors.Join(t.print(v), err)
}
