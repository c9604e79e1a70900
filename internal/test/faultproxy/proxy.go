package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// Options are the options of Listen.
type Options struct {
	Seed uint64 // decides which passings Random breaks
}

// Proxy forwards connections to a Postgres and breaks them according to its faults. Its methods may be called by any
// goroutine.
type Proxy struct {
	network, backend string
	listener         net.Listener
	plan             *plan
	stop             func() bool // ends the wait for the context of Listen
	work             sync.WaitGroup

	mu     sync.Mutex // guards all fields below
	open   map[net.Conn]struct{}
	closed bool
}

// Listen starts a proxy on a free port of the loopback. backendAddr is
// "host:port" or the path of a socket; Backend reads it from a connection
// string. The proxy closes when ctx ends.
func Listen(ctx context.Context, backendAddr string, o Options) (*Proxy, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for clients of the fault proxy: %w", err)
	}
	p := &Proxy{
		network:  "tcp",
		backend:  backendAddr,
		listener: listener,
		plan:     &plan{seed: o.Seed, seen: map[string]int{}},
		open:     map[net.Conn]struct{}{},
	}
	if strings.HasPrefix(backendAddr, "/") {
		p.network = "unix"
	}
	p.stop = context.AfterFunc(ctx, func() { _ = p.shut() })
	p.work.Go(p.accept)
	return p, nil
}

// Backend returns the address in a connection string, for Listen.
func Backend(dsn string) (string, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return "", fmt.Errorf("read the connection string: %w", err)
	}
	_, address := pgconn.NetworkAddress(config.Host, config.Port)
	return address, nil
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN returns the connection string original with this proxy in the place of its server. It panics if original is a
// URL that cannot be parsed.
func (p *Proxy) DSN(original string) string {
	host, port, _ := net.SplitHostPort(p.Addr())
	if !strings.Contains(original, "://") {
		return original + " host=" + host + " port=" + port + " sslmode=disable"
	}
	u, err := url.Parse(original)
	if err != nil {
		panic("faultproxy: the connection string is not a URL: " + err.Error())
	}
	u.Host = p.Addr()
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	return u.String()
}

// Set replaces all faults, including Random's. Counters start at zero.
func (p *Proxy) Set(faults ...Fault) { p.plan.set(faults) }

// Random breaks each passing with probability rate, before or after it. The seed, the statement's name and the count
// decide, so two runs break the same passings whatever the order of their connections. Zero turns it off.
func (p *Proxy) Random(rate float64, do Action) { p.plan.randomly(rate, do) }

// Seen returns how often each named statement passed since Set.
func (p *Proxy) Seen() map[string]int { return p.plan.seenSoFar() }

// Fired lists the faults that were performed since Set, in order, for a test to print and to check that it tested
// something.
func (p *Proxy) Fired() []string { return p.plan.firedSoFar() }

// Close cuts all connections and waits for their goroutines.
func (p *Proxy) Close() error {
	p.stop()
	err := p.shut()
	p.work.Wait()
	return err
}

// shut closes the listener and all connections, once.
func (p *Proxy) shut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	for c := range p.open {
		c.Close()
	}
	return p.listener.Close()
}

// accept ends when the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has gone already
		}
		p.work.Go(func() {
			defer client.Close()
			if p.track(client) {
				defer p.forget(client)
				serve(p, client)
			}
		})
	}
}

// track makes sure that shut closes c. It reports false if shut has already run.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.open[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}
