package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// Scenario is the way over HTTP. Each place has a socket in a directory, which its next process listens on, too.
var Scenario = Way{
	Name: "http", About: "runs that other programs do, over HTTP, with both sides killed",
	Open: openHTTP, Here: hereHTTP, There: thereHTTP,
}.Scenario()

func openHTTP(context.Context) (Medium, error) {
	dir, err := os.MkdirTemp("", "edda-remote-")
	return Medium{Address: dir, Close: func() error { return os.RemoveAll(dir) }}, err
}

// The sides, in the names of sockets.
const here, there = "here", "there"

func socket(dir, side string, no int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%d", side, no))
}

// toAny returns a client whose connections lead to any process of a side.
func toAny(dir, side string) *http.Client {
	var d net.Dialer
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: 20,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket(dir, side, rand.IntN(places)))
		},
	}}
}

func hereHTTP(kind string, at Place, reports *scheduler.Reports, log *slog.Logger) (bus.Part, edda.Runner, error) {
	handler := remote.NewHandler(reports, remote.HandlerOptions{Logger: slog.New(slog.DiscardHandler)})
	takes := server{socket(at.Address, here, at.No), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(answer{w, r, log}, r)
	})}
	submit := remote.Submit(kind, "http://there/work", remote.SubmitOptions{Client: toAny(at.Address, there)})
	return submit, takes, nil
}

// answer logs that a report was dropped: the program that made it will not make it again, and it counts for no run.
type answer struct {
	http.ResponseWriter
	to  *http.Request
	log *slog.Logger
}

func (a answer) WriteHeader(code int) {
	switch code {
	case http.StatusNoContent, http.StatusConflict, http.StatusServiceUnavailable: // it counts, is late, or comes again
	default:
		a.log.WarnContext(a.to.Context(), "a report was dropped", "path", a.to.URL.Path, "answer", code)
	}
	a.ResponseWriter.WriteHeader(code)
}

// server is an HTTP server on a socket.
type server struct {
	path    string
	handler http.Handler
}

const drain = 5 * time.Second

// Run serves until ctx ends. Nobody listens on a socket that is there already: its process was killed.
func (s server) Run(ctx context.Context) error {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		return err
	}
	serving := &http.Server{Handler: s.handler, ReadHeaderTimeout: drain}
	all := run.NewGroup(ctx)
	all.Go(func(context.Context) error {
		if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	all.Go(func(ctx context.Context) error {
		<-ctx.Done()
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		return serving.Shutdown(within)
	})
	return all.Wait()
}

// refusing is of how many submissions one is refused for now, and of how many one is done before it is answered.
const refusing, waiting = 20, 10

func thereHTTP(ctx context.Context, at Place, do Do) error {
	client := &remote.Client{URL: "http://here", HTTP: toAny(at.Address, here), Logger: slog.New(slog.DiscardHandler)}
	all := run.NewGroup(ctx)
	receive := func(w http.ResponseWriter, r *http.Request) {
		run, err := remote.RunOf(r)
		body, unread := io.ReadAll(r.Body)
		switch {
		case err != nil || unread != nil:
			http.Error(w, fmt.Sprint(err, unread), http.StatusBadRequest)
			return
		case rand.IntN(refusing) == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s := Submission{Run: run, Key: r.Header.Get("Idempotency-Key"), Body: body}
		if rand.IntN(waiting) == 0 {
			var said said
			if err := do(r.Context(), s, &said); err != nil || said.failure != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return // with 200
		}
		all.Go(func(ctx context.Context) error {
			_ = do(ctx, s, client) // it is reported, or the attempt is lost
			return nil
		})
		w.WriteHeader(http.StatusAccepted)
	}
	all.Go(server{socket(at.Address, there, at.No), http.HandlerFunc(receive)}.Run)
	return all.Wait()
}

// said keeps a report for the answer to a submission.
type said struct{ failure error }

func (*said) Beat(context.Context, remote.Run) error { return nil }

func (s *said) End(_ context.Context, _ remote.Run, failure error) error {
	s.failure = failure
	return nil
}
