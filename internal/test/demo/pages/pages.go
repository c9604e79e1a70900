package pages

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/ui/host"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	errAddress = errors.New("visitors may do everything, so only this machine may reach them: " +
		"want a loopback address, like 127.0.0.1:7433")
	errHost = errors.New("the host that the request names is no loopback address")
)

// Check refuses an address that other machines can reach.
func Check(address string) error {
	if !uihost.HostIsLoopback(address) {
		return fmt.Errorf("the pages at %q: %w", address, errAddress)
	}
	return nil
}

// visitor returns the same actor for every request from this machine.
func visitor(r *http.Request) (eddaui.Actor, error) {
	if !uihost.HostIsLoopback(r.Host) { // the name of a foreign site may resolve to this address
		return eddaui.Actor{}, errHost
	}
	return eddaui.Actor{Name: "visitor", From: r.RemoteAddr, Permissions: ^eddaui.Permission(0)}, nil // it is a play
}

// Server serves the pages. Visitors may do everything: it is a play.
type Server struct {
	listener net.Listener
	group    *run.Group
}

// Open listens on a loopback address, like 127.0.0.1:0, and serves until ctx ends or Close is called.
func Open(
	ctx context.Context, address string, pool *pgxpool.Pool, schema string, sagas ...*saga.Definition,
) (*Server, error) {
	if err := Check(address); err != nil {
		return nil, err
	}
	//nolint:contextcheck // it connects when the first page is read
	ui, err := eddaui.New(pool, eddaui.Options{Schema: schema, Sagas: sagas, Authorize: visitor})
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		ui.Close()
		return nil, fmt.Errorf("the pages: %w (choose a different address with --pages; port 0 is a free one)", err)
	}
	s := &Server{listener: listener, group: run.NewGroup(ctx)}
	mux := http.NewServeMux()
	mux.Handle("/edda/", http.StripPrefix("/edda", ui))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(ui.Close)
	s.group.Go(func(ctx context.Context) error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		defer ui.Close()
		return server.Shutdown(ending)
	})
	s.group.Go(func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return s, nil
}

// URL is the address of the first page.
func (s *Server) URL() string { return fmt.Sprintf("http://%s/edda/", s.listener.Addr()) }

// Wait returns when the server has ended.
func (s *Server) Wait() error { return s.group.Wait() }

// Close ends the server.
func (s *Server) Close() error {
	s.group.Stop()
	return s.group.Wait()
}
