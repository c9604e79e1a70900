package gallery

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Variable holds the Gallery of a process that serves pages and looks at them. With it set, a program calls Run.
const Variable = "EDDA_BENCH_VIEWER"

// Gallery says how many pages are open.
type Gallery struct {
	DSN, Schema string
	Pages       int
}

// paths are the pages that are opened in turn.
var paths = []string{"/now", "/endpoints/work", "/dead", "/sagas/order", "/sagas/order/order-000007"}

// Open starts a process in which the pages are open, and returns when each of them shows something. The process has
// taken so much processor time by then.
func Open(ctx context.Context, g Gallery) (close func() error, took time.Duration, err error) {
	if g.Pages == 0 {
		return func() error { return nil }, 0, nil
	}
	job, err := json.Marshal(g)
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), Variable+"="+string(job)), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	close = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	var nanoseconds int64
	if _, err := fmt.Fscanf(out, "ready %d\n", &nanoseconds); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("the process of the pages does not begin: %w", err), close())
	}
	return close, time.Duration(nanoseconds), nil
}

// Run is main for the process of the pages. It ends with its standard input.
func Run(ctx context.Context) error {
	g := Gallery{}
	if err := json.Unmarshal([]byte(os.Getenv(Variable)), &g); err != nil {
		return fmt.Errorf("read %s: %w", Variable, err)
	}
	pool, err := pgxpool.New(ctx, g.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	ui, err := eddaui.New(pool, eddaui.Options{Schema: g.Schema, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer ui.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: ui, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	shown := make(chan error, g.Pages)
	for n := range g.Pages {
		url := "http://" + listener.Addr().String() + paths[n%len(paths)] + "?live=1"
		go func() { shown <- follow(ctx, url, shown) }()
	}
	for range g.Pages {
		if err := <-shown; err != nil {
			return err
		}
	}
	var took syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &took); err != nil {
		return err
	}
	fmt.Println("ready", took.Utime.Nano()+took.Stime.Nano())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // its end is ours
	return nil
}

// follow reads a stream, and says when the first fragment has come.
func follow(ctx context.Context, url string, shown chan<- error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s is %s", url, answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 4<<20)
	for first := true; lines.Scan(); {
		if first && strings.HasPrefix(lines.Text(), "event: fragment") {
			first = false
			shown <- nil
		}
		if strings.HasPrefix(lines.Text(), "event: trouble") {
			return fmt.Errorf("page %s has trouble", url)
		}
	}
	return lines.Err()
}
