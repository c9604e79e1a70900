package vitals_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate/vitals"
)

// logged is a log that tests may read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// watched is a running Watch.
type watched struct {
	*world
	log    *logged
	alarms chan vitals.Alarm
}

func (w *world) watch(o vitals.Options) *watched {
	w.t.Helper()
	a := &watched{world: w, log: &logged{}, alarms: make(chan vitals.Alarm, 1000)}
	watch := &vitals.Watch{Reader: w.reader(o), Every: time.Second, Logger: slog.New(slog.NewTextHandler(a.log,
		&slog.HandlerOptions{Level: slog.LevelDebug})),
		Notify: func(_ context.Context, alarm vitals.Alarm) error {
			a.alarms <- alarm
			return errors.New("nobody reads it")
		}}
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	return a
}

// next waits for the next alarm about the subject.
func (w *watched) next(subject string) vitals.Alarm {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), pgdev.Patience(10*time.Second))
	defer cancel()
	for {
		select {
		case a := <-w.alarms:
			if strings.HasPrefix(a.Vital.Subject, subject) {
				return a
			}
		case <-ctx.Done():
			w.t.Fatalf("no alarm of %s came\n%s", subject, w.log)
		}
	}
}

// says waits until a line of the log has the parts: the line about an alarm may follow the alarm.
func (w *watched) says(parts ...string) {
	w.t.Helper()
	within := pgdev.Deadline(w.t)
	for _, part := range parts {
		for !strings.Contains(w.log.String(), part) {
			if run.Sleep(within, time.Millisecond) != nil {
				w.t.Fatalf("the log has not %q:\n%s", part, w.log)
			}
		}
	}
}

func TestWatchTellsWhatTurnsBadAndGood(t *testing.T) {
	w := newWorld(t)
	w.kill(10_000)
	watch := w.watch(atOnce())
	conn := w.session("application_name=report", "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")
	subject := fmt.Sprintf("session %d", conn.PgConn().PID())
	a := watch.next(subject)
	if a.Over || a.Vital.Name != vitals.Snapshot || a.Vital.Level != vitals.Bad || a.Schema != w.schema.Name() ||
		time.Since(a.At).Abs() > time.Minute || !strings.Contains(a.Vital.Do, "pg_terminate_backend") {
		t.Errorf("%+v", a)
	}
	_ = conn.Close(t.Context())
	if a = watch.next(subject); !a.Over || a.Vital.Subject != subject {
		t.Errorf("%+v", a)
	}
	watch.says(`msg="edda: a vital of the database turned bad" vital=snapshot subject="`+subject+`"`,
		`msg="edda: a vital of the database is good again" vital=snapshot subject="`+subject+`"`,
		`level=WARN msg="edda: an alarm was not delivered" vital=snapshot`, `over=true error="nobody reads it"`)
}

// bury writes a dead letter of a group that died some time ago.
func (w *world) bury(group string, ago time.Duration) {
	w.t.Helper()
	w.exec(`INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason,
			error, first_failed, died, error_group)
		VALUES ('orders', gen_random_uuid(), 'order.place', '{}', '{}', 24, 0, 'policy', 'card refused', now(),
			now() - $1::bigint * interval '1 second', $2)`, int64(ago.Seconds()), group)
}

func TestWatchTellsOfNewGroups(t *testing.T) {
	w := newWorld(t)
	w.bury("aaaaaaaaaaaa", time.Hour)    // too old for an alarm
	w.bury("bbbbbbbbbbbb", -time.Minute) // however late the first Read is
	watch := w.watch(vitals.Options{})
	a := watch.next("group")
	if a.Vital.Subject != "group bbbbbbbbbbbb" || a.Vital.Name != vitals.DeadLetters || a.Vital.Level != vitals.Bad ||
		!strings.Contains(a.Vital.Sentence, `kind "order.place" become dead letters in endpoint "orders"`) ||
		a.Vital.Do != "edda dead show 2; edda dead list --group bbbbbbbbbbbb; see docs/operate/recoverability.md" ||
		strings.Contains(a.Vital.Sentence, "card") {
		t.Errorf("%+v", a.Vital)
	}
	w.bury("bbbbbbbbbbbb", 0) // one more letter of the group
	w.exec(`INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason,
		error, first_failed, error_group)
		SELECT 'orders', gen_random_uuid(), 'k', '{}', '{}', 1, 0, 'policy', '', now(),
		'c' || lpad(n::text, 11, '0') FROM generate_series(1, 1025) n`)
	for n := 1; n <= 20; n++ {
		want := fmt.Sprintf("group c%011d", n)
		if a := watch.next("group"); a.Vital.Subject != want {
			t.Fatalf("the alarm is of %s, want %s", a.Vital.Subject, want)
		}
	}
	if a := watch.next("more groups"); !strings.Contains(a.Vital.Sentence, "1,005 more groups of dead letters are "+
		"new.") {
		t.Errorf("%+v", a.Vital)
	}
	watch.says(`msg="edda: a new group of dead letters" group=bbbbbbbbbbbb endpoint=orders kind=order.place letter=2`,
		`reason=policy error="card refused"`, `msg="edda: more new groups of dead letters" groups=1005`)
}

// A database that is away is logged once, and the watch continues.
func TestWatchSurvivesFailedLooks(t *testing.T) {
	w := newWorld(t)
	w.exec("ALTER TABLE :schema.queue RENAME TO hidden")
	watch := w.watch(vitals.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), pgdev.Patience(10*time.Second))
	defer cancel()
	for !strings.Contains(watch.log.String(), `level=DEBUG msg="edda: the vitals of the database were not read"`) &&
		ctx.Err() == nil {
		w.exec("SELECT pg_sleep(0.05)")
	}
	w.exec("ALTER TABLE :schema.hidden RENAME TO queue")
	w.bury("aaaaaaaaaaaa", -time.Minute)
	watch.next("group aaaaaaaaaaaa")
	if n := strings.Count(watch.log.String(),
		`level=WARN msg="edda: the vitals of the database were not read"`); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, watch.log)
	}
}

func TestWatchChecks(t *testing.T) {
	w := newWorld(t)
	good := vitals.Watch{Reader: w.reader(vitals.Options{})}
	if err := good.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if good.Every != 0 || good.Logger != nil {
		t.Error("Check changed the fields of its caller")
	}
	nowhere, err := vitals.New(w.pool, vitals.Options{Schema: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	for want, watch := range map[string]vitals.Watch{
		"the Reader is nil": {}, "Every is 1ms": {Reader: w.reader(vitals.Options{}), Every: time.Millisecond},
		"migrate": {Reader: nowhere},
	} {
		if err := watch.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	wrong := vitals.Watch{}
	if err := wrong.Run(t.Context()); err == nil {
		t.Error("Run runs without a Reader")
	}
}
