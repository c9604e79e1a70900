package pg_test

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
)

// An outage is one warning when it begins, one after five seconds and one a minute while it lasts, and one when it
// ends, however many loops warn.
func TestOutageIsSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		begun := time.Now()
		log := slog.New(slog.NewTextHandler(&said,
			&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					a.Value = slog.StringValue(a.Value.Time().Sub(begun).String())
				} else if a.Key == "since" {
					a.Value = slog.DurationValue(a.Value.Time().Sub(begun))
				}
				return a
			}}))
		o := pg.NewOutage(log)
		calm := o.Logger(log).With("endpoint", "one")
		lost := fmt.Errorf("take: %w", &pgconn.PgError{Code: "57P01"})
		for range 2 { // outages
			for range 75 {
				for range 8 { // workers
					calm.Warn("a batch was rolled back", "error", lost)
				}
				o.Over() // a statement of a different goroutine
				_ = run.Sleep(t.Context(), time.Second-1)
				calm.Warn("something else", "error", errors.New("no"))
				calm.Info("in between", "error", lost)
			}
			_ = run.Sleep(t.Context(), 2*time.Second)
			o.Over()
			o.Over()
		}
		var got []string
		for line := range strings.Lines(said.String()) {
			if !strings.Contains(line, "something else") && !strings.Contains(line, "in between") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		want := []string{"WARN a batch was rolled back", "WARN edda: the database is away",
			"WARN edda: the database is away", "WARN edda: the database is back"}
		var short []string
		for _, line := range got {
			_, level, _ := strings.Cut(line, "level=")
			level, rest, _ := strings.Cut(level, ` msg="`)
			text, _, _ := strings.Cut(rest, `"`)
			short = append(short, level+" "+text)
		}
		if diff := cmp.Diff(append(want, want...), short); diff != "" {
			t.Errorf("(-want +got)\n%s\n%s", diff, strings.Join(got, "\n"))
		}
		if at := regexp.MustCompile(`time=(\S+) level=WARN msg="edda: the database is away"`).FindStringSubmatch(
			said.String()); at == nil || !strings.HasPrefix(at[1], "5") && !strings.HasPrefix(at[1], "4.9") {
			t.Errorf("that the database is away is said first after %v, want five seconds", at)
		}
		if n := strings.Count(said.String(), "something else"); n != 150 {
			t.Errorf("%d warnings of other things were logged, want 150", n)
		}
	})
}
