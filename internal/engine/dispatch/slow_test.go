package dispatch

import (
	"context"
	"embed"
	"fmt"
	"go/parser"
	"go/token"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A transaction that has sent for a second commits the messages it has sent, and the rest goes in others. Cycles
// continue in the meantime.
func TestSlowSenderCommitsWhatItHasSent(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 3, 0)
	w.hourlies(1)
	s := w.scheduler()
	sends := 0
	w.sender.before = countingSends(&sends, func(n int) error {
		if n == 1 {
			<-time.After(sendFor)
			if c := w.cycle(s); c.queued != 1 {
				t.Errorf("%+v, want a manifest queued while a Sender takes its time", c)
			}
		}
		if active := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'"); n == 2 && active != 1 {
			t.Errorf("%d runs are active when the second message is sent, want the first", active)
		}
		return nil
	})
	if _, err := s.dispatcher.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'"); n != 3 {
		t.Errorf("%d runs are active after the pass, want 3", n)
	}
	w.onceEach()
}

// Five messages are sent at the same time, and never more. No entry is sent twice.
func TestOneServerSendsAsManyAtATimeAsItMay(t *testing.T) {
	for most, entries := range map[int]int{5: 30, 1: 60} {
		t.Run(fmt.Sprint(most), func(t *testing.T) { sendsAtATime(t, most, entries) })
	}
}

func sendsAtATime(t *testing.T, most, entries int) {
	w := loopsOpen(t)
	w.queued("q", entries, 0)
	var (
		mu          sync.Mutex
		inside, top int
		full        = make(chan struct{})
	)
	open := sync.OnceFunc(func() { close(full) })
	w.sender.before = func(context.Context, saga.Message, saga.Firing) error {
		mu.Lock()
		inside++
		if top = max(top, inside); inside >= most {
			open()
		}
		mu.Unlock()
		select {
		case <-full:
			<-time.After(50 * time.Millisecond) // time for one too many to come
		case <-time.After(pgdev.Patience(10 * time.Second)):
			open()
			t.Errorf("no %d messages are sent at a time", most)
		}
		mu.Lock()
		defer mu.Unlock()
		inside--
		return nil
	}
	s := w.scheduler(func(o *Options) { o.MaxConcurrentDispatch = most })
	w.drain(s)
	if top != most {
		t.Errorf("%d messages were sent at a time, want %d", top, most)
	}
	if n := w.count("SELECT count(*) FROM :schema.sent_message"); n != entries {
		t.Errorf("%d messages, want %d", n, entries)
	}
	w.onceEach()
}

// mute is a Sender that must not be called.
type mute struct{ t *testing.T }

func (m mute) SendTx(context.Context, pgx.Tx, saga.Message, ...saga.SendOption) (saga.Sent, error) {
	m.t.Error("a message is sent")
	return saga.Sent{}, errRefused
}

// A cycle runs its statements, and calls no code of a user.
func TestCycleCallsNothingOfTheUser(t *testing.T) {
	w := loopsOpen(t)
	p := w.behindProxy()
	s, err := New(p.pool, w.schema, mute{t}, Options{PollOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	w.cycle(s) // connects
	w.hourlies(3)
	w.expired()
	p.proxy.Set()
	if c := w.cycle(s); c.queued != 3 || c.reaped != 1 {
		t.Errorf("%+v, want 3 queued and 1 reaped", c)
	}
	statements := map[string]int{"begin": 1, "open": 1, "try_lock": 1, "load": 1, "savepoint": 2, "reap": 1, "queue": 1,
		"release": 2, "commit": 1}
	for name, n := range p.proxy.Seen() {
		if statements[name] != n {
			t.Errorf("the cycle has sent %q %d times, want %v", name, n, statements)
		}
	}
}

//go:embed *.go
var sources embed.FS

// A cycle reaches nothing outside of the process but its database: its files import neither os nor net.
func TestCycleReachesNoFilesAndNoNetwork(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"core.go", "evaluate.go", "queue.go", "reconcile.go", "signal.go", "backoff.go"} {
		text, err := sources.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range file.Imports {
			switch path := strings.Trim(one.Path.Value, `"`); {
			case path == "os", path == "io", path == "net", strings.HasPrefix(path, "os/"),
				strings.HasPrefix(path, "io/"), strings.HasPrefix(path, "net/"):
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// A cycle that breaks off at any of its statements, including the commit, has changed nothing.
func TestCycleThatBreaksOffLeavesNothing(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(3)
	w.expired()
	p := w.behindProxy()
	s := w.schedulerOver(p.pool)
	for _, fault := range []faultproxy.Fault{
		{Statement: "try_lock", When: faultproxy.After}, {Statement: "load", When: faultproxy.After},
		{Statement: "reap", When: faultproxy.After},
		{Statement: "queue", When: faultproxy.After}, {Statement: "commit", Do: faultproxy.Swallow},
	} {
		p.proxy.Set(fault)
		c, err := s.evaluator.cycle(t.Context(), noTerm)
		for err == nil && c.elsewhere { // until Postgres has noticed that the previous connection is gone
			c, err = s.evaluator.cycle(t.Context(), noTerm)
		}
		if err == nil {
			t.Errorf("%v: the cycle did not notice its end", fault)
		}
		if got := w.states("m1") + w.states("m2") + w.states("m3") + w.states("late"); got != "manual active 1" {
			t.Errorf("%v: a cycle that broke off left %s", fault, got)
		}
		n := w.count("SELECT count(*) FROM :schema.manifest WHERE name LIKE 'm_' AND due < now() AND run IS NULL")
		if n != 3 {
			t.Errorf("%v: %d of 3 manifests are still due", fault, n)
		}
	}
	p.proxy.Set()
	c := w.cycle(s)
	for c.elsewhere {
		c = w.cycle(s)
	}
	if c.queued != 3 || c.reaped != 1 {
		t.Errorf("%+v, want 3 queued and 1 reaped", c)
	}
}

// A Sender that informs an external receiver is called before the commit. If that fails, the run is sent again as the
// same attempt, so that the receiver can detect the repetition.
func TestForeignSenderIsToldOfTheSameAttemptAgain(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 1, 0)
	w.exec(`CREATE FUNCTION :schema.refuse() RETURNS trigger
		LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''57014''; END'`)
	w.exec(`CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON :schema.run DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION :schema.refuse()`)
	var told []saga.Firing
	w.sender.before = func(_ context.Context, _ saga.Message, f saga.Firing) error {
		told = append(told, f)
		return nil
	}
	s := w.scheduler()
	if _, err := s.dispatcher.pass(t.Context()); err == nil {
		t.Error("a pass whose commit fails returns no error")
	}
	if got := w.states("q"); got != "manual queued 0" {
		t.Errorf("q: %s, want it queued", got)
	}
	w.exec("DROP TRIGGER refuse ON :schema.run")
	w.drain(s)
	if len(told) != 2 || told[0].Run != told[1].Run || told[0].Attempt != 1 || told[1].Attempt != 1 {
		t.Errorf("told of %+v, want the first attempt of one run, twice", told)
	}
	w.onceEach()
}
