package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/demo"
	"github.com/jackc/pgx/v5/stdlib"
)

const lastRequests = 10 * time.Second // for requests that are under way when the program ends

// program is the site and the endpoints, in one process.
type program struct {
	site     *site
	listener net.Listener
	host     *edda.Host
}

func newProgram(d *demo.Database, pause time.Duration, listener net.Listener) (*program, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := bus.New(d.Pool, bus.Options{Schema: d.Edda, AutoInstall: true, Logger: log})
	if err != nil {
		return nil, err
	}
	runners, err := endpoints(b, pause)
	if err != nil {
		return nil, err
	}
	p := &program{listener: listener}
	if p.site, err = newSite(d.Pool, stdlib.OpenDBFromPool(d.Pool), b, log); err != nil {
		return nil, err
	}
	p.host, err = edda.NewHost(append(runners, p)...)
	return p, err
}

func (p *program) run(ctx context.Context) error {
	if err := p.host.Install(ctx); err != nil {
		return err
	}
	return errors.Join(p.host.Run(ctx), p.site.db.Close())
}

// Run serves until ctx ends, and then lets requests finish. It makes program an edda.Runner: server and endpoints live
// and end together. Streams are told to end; the browsers come back to whoever answers then.
func (p *program) Run(ctx context.Context) error {
	server := &http.Server{
		Handler:           p.site.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		IdleTimeout:       time.Minute,
	}
	server.RegisterOnShutdown(p.site.endStreams)
	ended := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRequests)
		defer cancel()
		ended <- server.Shutdown(closing)
	})()
	err := server.Serve(p.listener)
	if errors.Is(err, http.ErrServerClosed) {
		err = <-ended
	}
	return err
}
