package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/edda-go/edda/bus"
)

// site is a web server that a Host runs beside the endpoints.
type site struct {
	name, listen string
	server       *http.Server
}

func newSite(name, listen string, handler http.Handler) *site {
	return &site{name: name, listen: listen, server: &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}}
}

// Name is how the health calls it.
func (s *site) Name() string { return s.name }

// Run serves until ctx ends, and then lets requests finish.
func (s *site) Run(ctx context.Context) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	log.Printf("for %s: http://%s", s.name, listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := s.server.Shutdown(soon); err != nil {
		return err
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// placing sends the order of a request. When it answers, the message is committed.
func placing(b *bus.Bus) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m PlaceOrder
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&m); err != nil || m.Order == "" {
			http.Error(w, `want {"order": "7", "cents": 1990}`, http.StatusBadRequest)
			return
		}
		if _, err := b.Send(r.Context(), m); err != nil {
			log.Printf("order %q: %v", m.Order, err)
			http.Error(w, "try again later", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}
}
