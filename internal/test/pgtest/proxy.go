package pgtest

import (
	"context"
	"testing"

	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Proxy starts a proxy in front of the server. Connect with dsn to use it. It is closed when the test ends.
func Proxy(t testing.TB) (proxy *faultproxy.Proxy, dsn string) {
	t.Helper()
	backend, err := faultproxy.Backend(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err = faultproxy.Listen(context.WithoutCancel(t.Context()), backend, faultproxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	return proxy, proxy.DSN(pgdev.DSN(t))
}

// Proxied returns a pool with the role of like, whose connections use a proxy.
func Proxied(t testing.TB, like *pgxpool.Pool) (*faultproxy.Proxy, *pgxpool.Pool) {
	t.Helper()
	proxy, dsn := Proxy(t)
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	Become(config, like.Config().ConnConfig.RuntimeParams["role"])
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return proxy, pool
}
