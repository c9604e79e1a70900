package vitals

import (
	"context"
	"errors"
	"fmt"
	"github.com/edda-go/edda/internal/engine/handlers"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/run"
)

// Alarm reports that a vital turned bad, or is good again.
type Alarm struct {
	At     time.Time // by the database's clock
	Schema string
	Vital  Vital // if Over, the vital as it was when it was bad
	Over   bool  // the vital is good again
}

// Watch reads vitals at intervals. It logs which vitals turn bad and which are good again, and new groups of dead
// letters, and calls Notify. It is an edda.Runner: give a pointer to a Host or to eddafx.Runner. Or let a singleton
// run it, because one process is enough:
//
//	w := &vitals.Watch{Reader: reader, Notify: vitals.Webhook(url, nil)}
//	s, err := scheduler.NewSingleton(pool, "vitals", func(term scheduler.Term) error { return w.Run(term) },
//		scheduler.SingletonOptions{})
//
// A vital that is bad at the first Read raises an alarm, so a new watcher repeats the alarm of a lasting condition. A
// group of dead letters that exists at the first Read raises an alarm only if it began within two Every.
type Watch struct {
	Reader *Reader
	Every  time.Duration // between two Reads, 1 s to 1 h; 0 is 1 min
	// Notify is called for each alarm, one after another, with a context of two minutes. An error is logged, and the
	// next alarm follows. While Notify is at work, up to 100 alarms wait, and further ones are dropped and counted in
	// the log. Notify never delays a Read.
	Notify func(ctx context.Context, a Alarm) error
	Logger *slog.Logger // nil is slog.Default()
}

const (
	everyMinute  = time.Minute
	notifyWithin = 2 * time.Minute
	waiting      = 100 // alarms
	goodLooks    = 2   // good Reads in a row that end an alarm, so that a vital at its threshold raises few alarms
	newGroups    = 20  // of one Read, that raise an alarm each
	knownGroups  = 10_000
)

func (w *Watch) complete() (Watch, error) {
	c := *w
	var faults option.Faults
	if c.Reader == nil {
		faults.Add(errors.New("the Reader is nil"))
	}
	faults.Duration("Every", &c.Every, everyMinute, time.Second, time.Hour)
	c.Logger = handlers.Logger(c.Logger)
	if err := faults.Err(); err != nil {
		return c, fmt.Errorf("watch vitals: %w", err)
	}
	return c, nil
}

// Check reads once, so that a program whose role may not read the schema fails at its start. A Host calls it.
func (w *Watch) Check(ctx context.Context) error {
	c, err := w.complete()
	if err == nil {
		_, err = c.Reader.Read(ctx)
	}
	return err
}

// Run reads at intervals until ctx ends, and then returns nil. A Read that fails is logged, and Run continues. Run
// returns an error at once if the Watch is invalid.
func (w *Watch) Run(ctx context.Context) error {
	c, err := w.complete()
	if err != nil {
		return err
	}
	a := &watching{Watch: c, bad: map[string]*sick{}, queue: make(chan Alarm, waiting)}
	group := run.NewGroup(ctx)
	group.Go(a.lookOn)
	if c.Notify != nil {
		group.Go(a.deliver)
	}
	err = group.Wait()
	if a.dropped += len(a.queue); a.dropped > 0 {
		a.logDropped()
	}
	return err
}

// watching is one Run. The fields below queue belong to the loop that reads.
type watching struct {
	Watch

	guest   handlers.Guest // calls Notify
	queue   chan Alarm
	bad     map[string]*sick
	groups  map[string]bool // known groups; nil before the first Read
	failed  bool            // the last Read has failed
	dropped int
}

// sick is a vital that was bad, and the number of good Reads since then.
type sick struct {
	vital Vital
	good  int
}

func (w *watching) lookOn(ctx context.Context) error {
	for {
		err := run.UnlessOver(ctx, w.look(ctx))
		if err != nil {
			level := slog.LevelWarn
			if w.failed {
				level = slog.LevelDebug
			}
			w.Logger.Log(ctx, level, "edda: the vitals of the database were not read", "error", err)
		}
		w.failed = err != nil
		if w.dropped > 0 {
			w.logDropped()
		}
		if run.Sleep(ctx, w.Every) != nil {
			return nil
		}
	}
}

func (w *watching) logDropped() {
	w.Logger.Warn("edda: alarms were dropped", "dropped", w.dropped)
	w.dropped = 0
}

func (w *watching) look(ctx context.Context) error {
	report, err := w.Reader.Read(ctx)
	if err != nil {
		return err
	}
	w.compare(ctx, report)
	return w.lookForGroups(ctx, report.At)
}

// compare raises an alarm for each vital that turned bad, or is good again.
func (w *watching) compare(ctx context.Context, report Report) {
	for _, s := range w.bad {
		s.good++
	}
	for _, v := range report.Vitals {
		if v.Level < Bad {
			continue
		}
		if w.bad[v.key()] == nil {
			w.Logger.WarnContext(ctx, "edda: a vital of the database turned bad", "vital", v.Name, "subject", v.Subject,
				"value", v.Value.String(), "threshold", v.Threshold.String(), "sentence", v.Sentence, "do", v.Do)
			w.give(Alarm{At: report.At, Vital: v})
		}
		w.bad[v.key()] = &sick{vital: v}
	}
	for key, s := range w.bad {
		if s.good >= goodLooks {
			delete(w.bad, key)
			w.Logger.WarnContext(ctx, "edda: a vital of the database is good again", "vital", s.vital.Name, "subject",
				s.vital.Subject)
			w.give(Alarm{At: report.At, Vital: s.vital, Over: true})
		}
	}
}

// give queues an alarm, or drops it.
func (w *watching) give(a Alarm) {
	if w.Notify == nil {
		return
	}
	a.Schema = w.Reader.schema.Name()
	select {
	case w.queue <- a:
	default:
		w.dropped++
	}
}

func (w *watching) deliver(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-w.queue:
			if err := run.UnlessOver(ctx, w.notify(ctx, a)); err != nil {
				w.Logger.WarnContext(ctx, "edda: an alarm was not delivered", "vital", a.Vital.Name, "subject",
					a.Vital.Subject, "over", a.Over, "error", err)
			}
		}
	}
}

func (w *watching) notify(ctx context.Context, a Alarm) error {
	ctx, cancel := context.WithTimeout(ctx, notifyWithin)
	defer cancel()
	notified, wrong := handlers.Ask(&w.guest, notifyWithin+handlers.Patience, func() error { return w.Notify(ctx, a) })
	if wrong != nil {
		return fmt.Errorf("Notify: %w", wrong)
	}
	return notified
}
