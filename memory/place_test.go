package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// place is the bus of a story: in memory, or on Postgres.
type place interface {
	sender
	operator
	viewer
	endpoint(name string, o bus.EndpointOptions, parts ...bus.Part) (edda.Runner, error)
	scheduler(m ...scheduler.Manifest) (runs, edda.Runner, error)
}

// viewer has the reads of a program.
type viewer interface {
	Instance(ctx context.Context, d *saga.Definition, key string, into any) (saga.Instance, bool, error)
	waiting(ctx context.Context) (messages int, err error) // in all queues
	letters(ctx context.Context) ([]recoverability.Letter, error)
}

type sender interface {
	Send(ctx context.Context, m saga.Message, o ...saga.SendOption) (saga.Sent, error)
	Publish(ctx context.Context, m saga.Message, o ...saga.SendOption) (saga.Sent, error)
}

// operator has the commands of an operator.
type operator interface {
	pause(ctx context.Context, endpoint string) error
	resume(ctx context.Context, endpoint string) error
}

// runs has a program's operations on runs.
type runs interface {
	Trigger(ctx context.Context, manifest string, m saga.Message, o scheduler.TriggerOptions) (saga.ID, error)
	Activate(ctx context.Context, by saga.Firing, manifest string, input saga.Message) (saga.ID, bool, error)
	RunOf(ctx context.Context, id saga.ID) (scheduler.RunInfo, error)
	Cancel(ctx context.Context, id saga.ID, note string) error
	Retry(ctx context.Context, id saga.ID, note string) error
}

// inMemory is the place without a database.
type inMemory struct{ *memory.Bus }

func openMemory(t *testing.T, o bus.Options) place {
	t.Helper()
	b, err := memory.New(memory.Options{Routes: o.Routes, Logger: o.Logger, Events: o.Events})
	if err != nil {
		t.Fatal(err)
	}
	return inMemory{b}
}

func (m inMemory) endpoint(name string, o bus.EndpointOptions, parts ...bus.Part) (edda.Runner, error) {
	return memory.NewEndpoint(m.Bus, name, o, parts...)
}

func (m inMemory) scheduler(all ...scheduler.Manifest) (runs, edda.Runner, error) {
	s, err := memory.NewScheduler(m.Bus, all...)
	return s, s, err
}

func (m inMemory) waiting(context.Context) (messages int, err error) {
	for _, q := range m.Queues() {
		messages += q.Ready + q.Delayed + q.InHand
	}
	return messages, nil
}

func (m inMemory) letters(context.Context) ([]recoverability.Letter, error) {
	return m.DeadLetters(), nil
}

func (m inMemory) pause(_ context.Context, endpoint string) error { return m.Pause(endpoint, "a test") }

func (m inMemory) resume(_ context.Context, endpoint string) error { return m.Resume(endpoint) }

// onPostgres is the place with a database.
type onPostgres struct {
	*bus.Bus
	owner    *bus.Bus // may create tables
	operator *operate.Operator
	schema   string
	t        *testing.T
}

func openPostgres(t *testing.T, o bus.Options) place {
	t.Helper()
	pool, schema := pgtest.Database(t)
	o.Schema, o.Wakeup = schema.Name(), pgtest.IfPooled(bus.PollOnly, o.Wakeup)
	p := &onPostgres{schema: o.Schema, t: t}
	var err, errOwner, errOperate error
	p.Bus, err = bus.New(pool, o)
	p.owner, errOwner = bus.New(pgtest.Pool(t), bus.Options{Schema: o.Schema, Logger: o.Logger,
		Routes: o.Routes})
	p.operator, errOperate = operate.New(pool, operate.Options{Schema: o.Schema})
	if err := errors.Join(err, errOwner, errOperate); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *onPostgres) endpoint(name string, o bus.EndpointOptions, parts ...bus.Part) (edda.Runner, error) {
	if o.Poll == 0 {
		o.Poll = 20 * time.Millisecond
	}
	if _, err := bus.NewEndpoint(p.Bus, name, o, parts...); err != nil {
		return nil, err
	}
	if err := p.owner.InstallQueue(p.t.Context(), name); err != nil {
		return nil, err
	}
	return bus.NewEndpoint(p.Bus, name, o, parts...)
}

func (p *onPostgres) scheduler(all ...scheduler.Manifest) (runs, edda.Runner, error) {
	s, err := scheduler.New(p.owner, scheduler.Options{
		Owner: "story", Logger: slog.New(slog.DiscardHandler), Evaluate: 20 * time.Millisecond,
		Dispatch: 20 * time.Millisecond, Reconcile: 50 * time.Millisecond,
	}, all...)
	return s, s, err
}

func (p *onPostgres) waiting(ctx context.Context) (messages int, err error) {
	queues, err := p.operator.Queues().List(ctx)
	for _, q := range queues {
		messages += int(q.Ready + q.Delayed + q.Claimed + q.Parked)
	}
	return messages, err
}

func (p *onPostgres) letters(ctx context.Context) ([]recoverability.Letter, error) {
	all, err := p.operator.DeadLetters().List(ctx, recoverability.LetterFilter{})
	for n := 0; n < len(all) && err == nil; n++ {
		all[n], err = p.operator.DeadLetters().Show(ctx, all[n].Number)
	}
	return all, err
}

func (p *onPostgres) pause(ctx context.Context, endpoint string) error {
	return p.operator.Endpoints().Pause(ctx, endpoint, "a test")
}

func (p *onPostgres) resume(ctx context.Context, endpoint string) error {
	return p.operator.Endpoints().Resume(ctx, endpoint)
}

// teller collects the lines of a story: texts of handlers, and fates of messages. It is safe for concurrent use.
type teller struct {
	mu      sync.Mutex
	lines   []string
	handled int // messages, minus the ones in events of batches
}

func (l *teller) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *teller) has(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.lines, line)
}

// says reports whether a line has this beginning.
func (l *teller) says(begin string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool { return strings.HasPrefix(line, begin) })
}

func (l *teller) sorted() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.lines)
	return strings.Join(l.lines, "\n")
}

// hear adds a line about the fate of a message.
func (l *teller) hear(e event.Event) {
	switch e := e.(type) {
	case event.BatchDone:
		l.mu.Lock()
		l.handled -= e.Handled
		l.mu.Unlock()
	case event.Handled:
		l.mu.Lock()
		l.handled++
		l.mu.Unlock()
		of := ""
		if e.Saga != "" {
			of = " by " + e.Saga + "/" + e.Key
		}
		l.say("%s: handled %s%s", e.Endpoint, e.Info.Kind, of)
	case event.Retried:
		l.say("%s: retried %s after %d in %v: %v", e.Endpoint, e.Info.Kind, e.Info.Attempt, e.Delay, firstLine(e.Err))
	case event.DeadLettered:
		l.say("%s: dead %s after %d, %s: %v", e.Endpoint, e.Info.Kind, e.Info.Attempt, e.Reason, firstLine(e.Err))
	case event.RunFailed:
		l.say("%s: run failed %s, final %v, %s: %v", e.Endpoint, e.Info.Kind, e.Final, e.Reason, firstLine(e.Err))
	case event.Discarded:
		l.say("%s: discarded %s: %s", e.Endpoint, e.Info.Kind, e.Reason)
	case event.Paused:
		l.say("%s: paused: %s", e.Endpoint, e.Reason)
	case event.Conflicted: // memory has no conflicts, and they change no line of a story
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return line
}

// scene is a story that is being played.
type scene struct {
	*testing.T
	place
	*teller
	runs    runs
	runners []edda.Runner
	show    []*saga.Definition // at the end their instances with these keys are added as lines
	keys    []string
	left    int // messages that stay
}

func newScene(t *testing.T, open func(*testing.T, bus.Options) place, o bus.Options) *scene {
	t.Helper()
	s := &scene{T: t, teller: &teller{}}
	o.Logger, o.Events = slog.New(slog.DiscardHandler), s.hear
	s.place = open(t, o)
	return s
}

// on adds an endpoint to the story.
func (s *scene) on(name string, o bus.EndpointOptions, parts ...bus.Part) {
	s.Helper()
	e, err := s.endpoint(name, o, parts...)
	if err != nil {
		s.Fatal(err)
	}
	s.runners = append(s.runners, e)
}

// manifests adds a scheduler to the story.
func (s *scene) manifests(all ...scheduler.Manifest) {
	s.Helper()
	runs, runner, err := s.scheduler(all...)
	if err != nil {
		s.Fatal(err)
	}
	s.runs, s.runners = runs, append(s.runners, runner)
}

// play runs everything while do runs, until only left messages remain, and returns the lines.
func (s *scene) play(do func()) string {
	s.Helper()
	stop := s.run()
	do()
	s.await("an end of the messages", func() bool {
		waiting, err := s.waiting(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		return waiting == s.left
	})
	if err := stop(); err != nil {
		s.Fatal(err)
	}
	if s.handled != 0 {
		s.Errorf("%d messages were handled that no batch tells of", s.handled)
	}
	s.tellInstances()
	return s.sorted()
}

func (s *scene) lettersOf() []recoverability.Letter {
	s.Helper()
	all, err := s.letters(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return all
}

func (s *scene) tellInstances() {
	for _, d := range s.show {
		for _, key := range s.keys {
			i, ok, err := s.Instance(s.Context(), d, key, nil)
			switch {
			case err != nil:
				s.Fatal(err)
			case ok:
				s.say("%s/%s is version %d, %s, and waits for %d timeouts", i.Saga, i.Key, i.Version, i.State,
					len(i.Pending))
			default:
				s.say("%s/%s is not there", d.Name(), key)
			}
		}
	}
}

func (s *scene) await(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(pgdev.Patience(20 * time.Second)); !is(); {
		if err := run.Sleep(s.Context(), 5*time.Millisecond); err != nil || time.Now().After(deadline) {
			s.Fatalf("%s did not come (%v); what was told:\n%s", what, err, s.sorted())
		}
	}
}

func (s *scene) send(m saga.Message, o ...saga.SendOption) saga.Sent {
	s.Helper()
	sent, err := s.Send(s.Context(), m, o...)
	if err != nil {
		s.Fatal(err)
	}
	return sent
}

func (s *scene) publish(m saga.Message, o ...saga.SendOption) saga.Sent {
	s.Helper()
	sent, err := s.Publish(s.Context(), m, o...)
	if err != nil {
		s.Fatal(err)
	}
	return sent
}
