package lease_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// briefly is a term short enough for a test to wait for, on a machine that is busy with other tests.
const briefly = 3 * time.Second

var short = lease.Options{Lease: briefly, Acquire: 100 * time.Millisecond,
	Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}

// diary records the actions of the functions of several keepers, by this process's clock.
type diary struct {
	mu    sync.Mutex
	lines []line
	news  chan struct{}
}

type line struct {
	who, what string
	epoch     int64
	at        time.Time
}

func newDiary() *diary { return &diary{news: make(chan struct{}, 1)} }

func (d *diary) note(who, what string, epoch int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line{who, what, epoch, time.Now()})
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// find returns the first line of that kind, after waiting for it.
func (d *diary) find(t *testing.T, who, what string) line {
	t.Helper()
	for {
		d.mu.Lock()
		for _, l := range d.lines {
			if l.who == who && l.what == what {
				d.mu.Unlock()
				return l
			}
		}
		d.mu.Unlock()
		select {
		case <-d.news:
		case <-time.After(pgdev.Patience(25 * time.Second)):
			t.Fatalf("waited in vain for: %s %s\n%+v", who, what, d.lines)
		}
	}
}

// keep runs a keeper with terms of ttl. Its function records when it begins and when its context ends.
func (w *world) keep(pool *pgxpool.Pool, d *diary, who string, ttl time.Duration) (k *lease.Keeper, stop func()) {
	w.t.Helper()
	o := short
	o.Holder, o.Lease = who, ttl
	job := lease.Job{Name: "sweep", Run: func(ctx context.Context, term lease.Term) error {
		d.note(who, "begins", term.Epoch)
		<-ctx.Done()
		d.note(who, "ends", term.Epoch)
		return nil
	}}
	k, err := lease.NewKeeper(pool, w.store, job, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return k, pgtest.Run(w.t, "keeper "+who, k.Run)
}

// A holder whose renewals get lost has ended its work before any other begins.
func TestNobodyBeginsBeforeTheLastOneHasEnded(t *testing.T) {
	for name, action := range map[string]faultproxy.Action{
		"renewals swallowed":           faultproxy.Swallow,
		"renewals done, answers lost":  faultproxy.DropReply,
		"renewals hang in the network": faultproxy.Delay(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			w, d := open(t), newDiary()
			proxy, pool := pgtest.Proxied(w.t, w.pool.Pool)
			_, stopA := w.keep(pool, d, "a", briefly)
			first := d.find(t, "a", "begins")
			proxy.Set(faultproxy.Fault{Statement: "renew", Do: action},
				faultproxy.Fault{Statement: "release"}, faultproxy.Fault{Statement: "acquire"}) // it does not come back
			w.keep(w.pool.Pool, d, "b", briefly)
			second, ended := d.find(t, "b", "begins"), d.find(t, "a", "ends")
			if second.at.Before(ended.at) || second.epoch <= first.epoch {
				t.Errorf("b began %v before a had ended", ended.at.Sub(second.at))
			}
			if len(proxy.Fired()) == 0 {
				t.Error("nothing was broken")
			}
			stopA()
		})
	}
}

// After a crash a different process gets the lease after Lease + 1.25 × Acquire at most; after a clean end at once.
func TestHandOver(t *testing.T) {
	w, d := open(t), newDiary()
	_, stopA := w.keep(w.pool.Pool, d, "a", time.Minute)
	d.find(t, "a", "begins")
	b, _ := w.keep(w.pool.Pool, d, "b", time.Minute)
	stopA()
	ended, began := d.find(t, "a", "ends"), d.find(t, "b", "begins")
	if wait := began.at.Sub(ended.at); wait > time.Minute/2 {
		t.Errorf("b began %v after a had released", wait)
	}
	if term, ok := b.Holding(); !ok || term.Epoch != began.epoch {
		t.Errorf("b holds %+v, %t", term, ok)
	}
	if ok, err := w.store.Resign(t.Context(), w.pool, "sweep"); !ok || err != nil {
		t.Fatalf("resign: %t, %v", ok, err)
	}
	b.Wake()
	d.find(t, "b", "ends")
}

// Work that uses every connection does not keep the lease from being renewed.
func TestRenewalsHaveAConnectionOfTheirOwn(t *testing.T) {
	w, d := open(t), newDiary()
	var taken []*pgxpool.Conn
	for range w.pool.Config().MaxConns {
		conn, err := w.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, conn)
	}
	_, stop := w.keep(w.pool.Pool, d, "a", briefly)
	begun := d.find(t, "a", "begins")
	<-time.After(time.Until(begun.at.Add(2 * briefly)))
	stop()
	if ended := d.find(t, "a", "ends"); ended.at.Sub(begun.at) < 2*briefly {
		t.Errorf("the term ended after %v", ended.at.Sub(begun.at))
	}
	for _, conn := range taken {
		conn.Release()
	}
	if list := w.list(); len(list) != 1 || list[0].Held || list[0].Epoch != begun.epoch {
		t.Errorf("the lease stands at %+v", list)
	}
}

func TestRunEndsWhenItCannotGoOn(t *testing.T) {
	t.Parallel()
	schema, err := pg.ParseSchema(pgdev.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	store := lease.New(schema)
	k, err := lease.NewKeeper(pgdev.Pool(t), store,
		lease.Job{Name: "sweep", Run: func(context.Context, lease.Term) error { return nil }}, short)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Run(t.Context()); pgerr.ClassOf(err) != pgerr.Unprepared {
		t.Errorf("Run in a schema that is not there: %v", err)
	}
}

func TestOneRunAtATime(t *testing.T) {
	w, d := open(t), newDiary()
	k, _ := w.keep(w.pool.Pool, d, "a", time.Minute)
	d.find(t, "a", "begins")
	if err := k.Run(t.Context()); !errors.Is(err, lease.ErrRunning) {
		t.Errorf("a second Run: %v", err)
	}
}
