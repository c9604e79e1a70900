package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// The provider is down, then busy, and then takes the charge: three calls under one key.
func TestChargesUnderOneKey(t *testing.T) {
	var (
		mu   sync.Mutex
		keys = map[string]int{}
	)
	paid := make(chan struct{})
	company := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		switch keys[key]++; keys[key] {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.WriteHeader(http.StatusCreated)
			close(paid)
		}
	}))
	defer company.Close()
	pool := eddatest.Pool(t)
	b, err := bus.New(pool, bus.Options{AutoInstall: true})
	if err != nil {
		t.Fatal(err)
	}
	payments, err := endpoint(b, &provider{client: company.Client(), url: company.URL})
	if err != nil {
		t.Fatal(err)
	}
	// An endpoint sends the request, because a reply needs a sender: a message sent by a program has none.
	asker, err := bus.NewEndpoint(b, "asker", bus.EndpointOptions{},
		bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m ask) error { ctx.Send(Charge(m)); return nil }),
		bus.HandleTx(func(*bus.Context, pgx.Tx, Charged) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, e := range []*bus.Endpoint{payments, asker} {
		if err := e.Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- e.Run(ctx) }()
	}
	if _, err := b.Send(t.Context(), ask{Order: "7", Cents: 990}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-paid:
	case <-time.After(5 * time.Minute):
		t.Error("nothing was charged")
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if len(keys) != 1 {
		t.Errorf("the calls had %d keys, want 1", len(keys))
	}
}

type ask Charge

func (ask) Kind() string { return "test.ask" }
