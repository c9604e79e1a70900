package bus_test

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// link forwards connections to Postgres, until the network is severed: then no packet passes in either direction, not
// even the answer to a probe of TCP, and no connection is closed.
type link struct {
	t        *testing.T
	listener net.Listener
	server   string

	mu      sync.Mutex
	whole   chan struct{} // closed while packets pass
	sockets []syscall.RawConn
}

func newLink(t *testing.T) *link {
	t.Helper()
	server, err := faultproxy.Backend(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{t: t, listener: listener, server: server, whole: make(chan struct{})}
	close(l.whole)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(client)
		}
	}()
	return l
}

func (l *link) forward(client net.Conn) {
	defer client.Close()
	l.passes()
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer server.Close()
	if raw, err := server.(*net.TCPConn).SyscallConn(); err == nil {
		l.mu.Lock()
		l.sockets = append(l.sockets, raw)
		l.mu.Unlock()
	}
	go l.carry(client, server)
	l.carry(server, client)
}

// carry ends both connections when the connection that it reads ends.
func (l *link) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	for buf := make([]byte, 1<<16); ; {
		n, err := from.Read(buf)
		if l.passes(); err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// passes returns when packets pass.
func (l *link) passes() {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	<-whole
}

// sever stops all packets. The kernel drops the packets of the server before they reach TCP, as if the machine had
// vanished.
func (l *link) sever() {
	l.t.Cleanup(l.mend) // before the process is asked to end
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
	drop := []syscall.SockFilter{{Code: syscall.BPF_RET | syscall.BPF_K}}
	l.each(func(fd int) {
		if err := syscall.AttachLsf(fd, drop); err != nil { //nolint:staticcheck // the other package is no dependency
			l.t.Errorf("sever a connection: %v", err)
		}
	})
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		l.each(func(fd int) { _ = syscall.DetachLsf(fd) }) //nolint:staticcheck // as above
		close(l.whole)
	}
}

// each calls f for the sockets that are open.
func (l *link) each(f func(fd int)) {
	for _, raw := range l.sockets {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // its error means that the socket is closed
	}
}

// A process that the network has cut off in the middle of a batch holds no transaction and no lock after the time that
// docs/operate/crashes.md names, and a second process handles its message. When the network is back, the first process
// handles messages again, with as many sessions as before, and the message that it had in hand counts once.
func TestAProcessThatTheNetworkCutsOffLeavesNothing(t *testing.T) {
	w := newWorldOf(t, bus.Options{}, func(testing.TB, *pgxpool.Pool, string) string { return "" })
	w.exec(`CREATE TABLE edda.done (n int)`)
	l := newLink(t)
	dsn := strings.Replace(pgdev.DSN(t), l.server, l.listener.Addr().String(), 1) + "&application_name=" + w.schema
	far := w.process(dsn, bus.Options{})
	stand, ran := newGate(t), atomic.Int64{}
	done := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
		_, err := tx.Exec(ctx, `INSERT INTO `+w.schema+`.done VALUES ($1)`, m.N)
		if ran.Add(1); m.N == 1 {
			stand.pass()
		}
		return err
	})
	o := bus.EndpointOptions{Concurrency: 2, Poll: 100 * time.Millisecond}
	w.install("jobs", done)
	w.startOn(far, "jobs", o, done)
	w.send(add{Key: "a", N: 1})
	await(w, "the handler runs", stand.came)
	const sessions = ` FROM pg_stat_activity a WHERE application_name = $1 `
	const holding = `SELECT count(*)` + sessions + `AND (xact_start IS NOT NULL
		OR EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory'))`
	w.until("it holds a transaction and the lock of its session",
		func() bool { return w.count(holding, w.schema) == 2 })
	l.sever()
	w.untilWithin(pgdev.Patience(20*time.Second), "it holds nothing",
		func() bool { return w.count(holding, w.schema) == 0 })
	stop := w.startOn(w.bus, "jobs", o, done)
	w.untilEmpty("jobs")
	stop()
	l.mend()
	stand.open()
	w.send(add{Key: "a", N: 2})
	w.untilWithin(pgdev.Patience(40*time.Second), "it works again", func() bool { return w.rows("jobs") == 0 })
	w.until("it has one session that listens", func() bool {
		return w.count(`SELECT count(*)`+sessions+`AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid
			AND l.locktype = 'advisory')`, w.schema) == 1
	})
	w.want(2, `SELECT count(*) FROM edda.done`)
	w.want(2, `SELECT count(DISTINCT n) FROM edda.done`)
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
}
