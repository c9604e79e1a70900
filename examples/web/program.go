package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

const lastRequests = 10 * time.Second // for requests that are under way when the program ends

// program is the web side as an edda.Runner.
type program struct {
	site     *site
	listener net.Listener
}

// Run serves until ctx ends, and then lets requests finish. Server and endpoints live and end together. Streams are
// ended; the browsers connect again, to whichever process answers then.
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
