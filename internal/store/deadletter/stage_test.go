package deadletter_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// queues resends letters as operate.DeadLetters does.
type queues struct{ routes *queue.Router }

func (q queues) Resend(ctx context.Context, tx pgx.Tx, letters ...recoverability.Letter) error {
	known, err := q.routes.SeenBy(ctx, tx)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	for _, l := range letters {
		to := known.Endpoints[l.Endpoint]
		if to == nil {
			return deadletter.ErrUndeliverable
		}
		in := queue.NewInOrder(pipeline, to)
		in.Add(l.MessageID, l.Kind, l.Header, l.Body)
		in.Flush()
	}
	return tx.SendBatch(ctx, pipeline).Close()
}

// shop is an office with queues, to which letters are retried.
type shop struct {
	*office
	op    queues
	owner *pgxpool.Pool // owns the tables
}

func newShop(t *testing.T, letters ...recoverability.Letter) *shop {
	t.Helper()
	s := &shop{office: newOffice(t, letters...), owner: pgtest.Pool(t)}
	owner, err := operate.New(s.owner, operate.Options{Schema: s.schema.Name()})
	if err == nil {
		err = owner.Queues().Install(t.Context(), "orders") // queue 1
	}
	if err == nil {
		err = owner.Queues().Install(t.Context(), "stock") // queue 2
	}
	if err != nil {
		t.Fatal(err)
	}
	s.op = queues{queue.NewRouter(pg.Committed(s.pool), s.schema, nil)}
	return s
}

func (s *shop) exec(sql string, args ...any) int64 {
	s.Helper()
	return pgtest.Exec(s, s.pool, s.schema.Render(sql), args...)
}

// handle takes the messages that wait in orders, and makes the first of them dead letters again, as many as die.
func (s *shop) handle(die int) {
	s.Helper()
	s.exec(`WITH gone AS (DELETE FROM :schema.queue_1 RETURNING id, kind, header, body),
		numbered AS (SELECT *, row_number() OVER (ORDER BY id) AS n FROM gone)
		INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error)
		SELECT 'orders', id, kind, header, body, 1, 0, 'permanent', 'no article ' || n
		FROM numbered WHERE n <= $1`, die)
}

// canary runs a job and handles the messages of each stage as soon as they have been sent; die returns how many of
// them die again. canary returns the sizes of the stages.
func (s *shop) canary(number int64, die func(size int) int) (sizes []int, j recoverability.Job) {
	s.Helper()
	at := int64(0)
	j, err := s.store.RunJob(s.Context(), s.pool, s.op, number, func(j recoverability.Job) {
		if waits := s.count("SELECT count(*) FROM :schema.queue_1"); waits > 0 &&
			(s.count("SELECT count(*) FROM :schema.dead_letter_job WHERE stage_sent IS NOT NULL") > 0 ||
				j.State == recoverability.JobDone) {
			sizes = append(sizes, int(j.Ended-at))
			at = j.Ended
			s.handle(die(waits))
		}
	})
	if err != nil {
		s.Fatal(err)
	}
	return sizes, j
}

func TestCanaryGoesInStages(t *testing.T) {
	t.Parallel()
	s := newShop(t, numbered(300, "orders")...)
	number := s.job(recoverability.Job{Action: recoverability.JobRetry, Plan: []int{1, 5, 120}})
	sizes, j := s.canary(number, func(size int) int { return size / 10 })
	if !slices.Equal(sizes, []int{1, 5, 120, 120, 54}) || j.State != recoverability.JobDone || j.Ended != 300 ||
		j.Stage != 5 {
		t.Errorf("stages of %v, %+v", sizes, j)
	}
	if n := s.count("SELECT count(*) FROM :schema.dead_letter"); n != 29 {
		t.Errorf("%d letters died again, want 29", n)
	}
}

// If more than a tenth of a stage dies again, no further stage begins until an operator resumes the job.
func TestCanaryStopsItself(t *testing.T) {
	t.Parallel()
	s := newShop(t, numbered(300, "orders")...)
	number := s.job(recoverability.Job{Action: recoverability.JobRetry, Plan: []int{1, 20, 100}})
	sizes, j := s.canary(number, func(size int) int { return min(size/20*3, 3) })
	why := "3 of 20 messages of stage 2 failed again: no article 3"
	if !slices.Equal(sizes, []int{1, 20}) || j.State != recoverability.JobPaused || j.Ended != 21 || j.Error != why {
		t.Errorf("stages of %v, %+v", sizes, j)
	}
	if again := s.run(number); again.State != recoverability.JobPaused || again.Ended != 21 {
		t.Errorf("run while it is paused: %+v", again)
	}
	if err := s.store.ResumeJob(t.Context(), s.pool, number); err != nil {
		t.Fatal(err)
	}
	sizes, j = s.canary(number, func(int) int { return 0 })
	if !slices.Equal(sizes[1:], []int{20, 100, 100, 58}) || sizes[0] != 22 || j.State != recoverability.JobDone ||
		j.Error != "" {
		t.Errorf("stages of %v, %+v", sizes, j)
	}
	if err := s.store.ResumeJob(t.Context(), s.pool, number); !errors.Is(err, deadletter.ErrNoJob) {
		t.Errorf("a job that is done was resumed: %v", err)
	}
}

// A stage waits up to half a minute for messages that are in hand, wait for a later time or are parked.
func TestCanaryWaitsForFates(t *testing.T) {
	t.Parallel()
	s := newShop(t, numbered(4, "orders")...)
	number := s.job(recoverability.Job{Action: recoverability.JobRetry, Plan: []int{2}})
	s.first(number)
	for _, hinder := range []string{
		"UPDATE :schema.queue_1 SET due = now() + interval '1 hour'",
		`WITH gone AS (DELETE FROM :schema.queue_1 RETURNING *)
			INSERT INTO :schema.parked (queue, key, due, id, sent, attempt, conflict, kind, header, body)
			SELECT 1, 'k', due, id, sent, attempt, conflict, kind, header, body FROM gone`,
	} {
		s.exec(hinder)
		if j := s.look(number); j.Stage != 1 || j.State != recoverability.JobOpen {
			t.Errorf("after %s: %+v", hinder, j)
		}
	}
	s.exec("UPDATE :schema.dead_letter_job SET stage_sent = stage_sent - interval '31 seconds'")
	if j := s.look(number); j.State != recoverability.JobDone || j.Stage != 2 {
		t.Errorf("after half a minute: %+v", j)
	}
}

// A message that waits for its next attempt has failed, in any queue, for any due time, and with any messages next to
// it. Earlier stages count: a failure that came after its stage pauses the job in a later stage.
func TestCanaryCountsWhatWaitsForItsNextAttempt(t *testing.T) {
	t.Parallel()
	const (
		failed = "UPDATE :schema.queue_1 SET attempt = 1, last_error = 'the bank is away', due = due + interval "
		soon   = failed + "'1 second'"
		hour   = failed + "'1 hour'"
		one    = hour + " WHERE id = (SELECT id FROM :schema.queue_1 ORDER BY id LIMIT 1)"
		late   = "UPDATE :schema.dead_letter_job SET stage_sent = stage_sent - interval '31 seconds'"
		park   = `WITH gone AS (DELETE FROM :schema.queue_1 WHERE attempt > 0 RETURNING *)
			INSERT INTO :schema.parked (queue, key, due, id, sent, attempt, conflict, kind, header, body, last_error)
			SELECT 1, 'k', due, id, sent, attempt, conflict, kind, header, body, last_error FROM gone`
	)
	for what, c := range map[string]struct {
		plan   []int
		stages [][]string // the state of the messages after each stage
		want   string     // "" if the next stage begins
	}{
		"soon":                {[]int{1}, [][]string{{soon}}, "1 of 1 messages of stage 1"},
		"parked":              {[]int{1}, [][]string{{soon, park}}, "1 of 1 messages of stage 1"},
		"in an hour":          {[]int{1}, [][]string{{hour}}, "1 of 1 messages of stage 1"},
		"beside others":       {[]int{9}, [][]string{{one, late}}, "1 of 9 messages of stage 1"},
		"of an earlier stage": {[]int{1, 8}, [][]string{{late}, {one, late}}, "1 of 9 messages of all stages up to 2"},
		"a tenth":             {[]int{10}, [][]string{{one, late}}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, numbered(30, "orders")...)
			number := s.job(recoverability.Job{Action: recoverability.JobRetry, Plan: c.plan})
			for _, happens := range c.stages {
				s.first(number)
				for _, sql := range happens {
					s.exec(sql)
				}
			}
			j := s.look(number)
			if c.want == "" {
				if j.Stage != 2 || j.State != recoverability.JobOpen {
					t.Errorf("%+v, want the second stage", j)
				}
				return
			}
			want := c.want + " failed again: the bank is away"
			if j.State != recoverability.JobPaused || j.Error != want {
				t.Errorf("it has sent %d: %s, %q; want %q", j.Ended, j.State, j.Error, want)
			}
		})
	}
}

// A message that dies while the job checks its stage counts as dead or as waiting, and never as handled: one snapshot
// is used for the queues and the dead letters.
func TestCanarySeesWhatDiesDuringItsLook(t *testing.T) {
	t.Parallel()
	s := newShop(t, numbered(1, "orders")...)
	s.run(s.job(recoverability.Job{Action: recoverability.JobRetry}))
	look := s.schema.Render(`SELECT f.waiting + (SELECT count(*) FROM :schema.dead_letter)
		FROM :schema.stage_fates('orders', ARRAY(SELECT id FROM :schema.queue_1), '-infinity', true) f`)
	seen := make(chan int64, 1)
	err := pgx.BeginTxFunc(t.Context(), s.owner, pg.ReadCommitted, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), s.schema.Render(`
			LOCK TABLE :schema.parked IN ACCESS EXCLUSIVE MODE; -- so that the look stops before it reads the queue
			WITH gone AS (DELETE FROM :schema.queue_1 RETURNING id, kind, header, body)
			INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason,
				error)
			SELECT 'orders', id, kind, header, body, 1, 0, 'permanent', 'no article' FROM gone`))
		go func() {
			n := int64(-1)
			if err := s.pool.QueryRow(s.Context(), look).Scan(&n); err != nil {
				s.Error(err)
			}
			seen <- n
		}()
		for err == nil && s.count(`SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
			JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = :'schema' AND c.relname = 'parked' AND NOT l.granted`) == 0 {
			runtime.Gosched()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := <-seen; n != 1 {
		t.Errorf("the message is seen %d times, waiting or dead, want once", n)
	}
}

// run runs a job.
func (s *shop) run(number int64) recoverability.Job {
	s.Helper()
	j, err := s.store.RunJob(pgdev.Deadline(s), s.pool, s.op, number, nil)
	if err != nil {
		s.Fatal(err)
	}
	return j
}

// first runs one step of a job.
func (s *shop) first(number int64) (first recoverability.Job) {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	_, err := s.store.RunJob(ctx, s.pool, s.op, number, func(j recoverability.Job) { first = j; stop() })
	if !errors.Is(err, context.Canceled) {
		s.Fatal(err)
	}
	return first
}

// begins is a pool that calls tell before each transaction with the number of earlier transactions.
type begins struct {
	*pgxpool.Pool
	tell func(before int)
	n    *int
}

func (b begins) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	b.tell(*b.n)
	*b.n++
	return b.Pool.BeginTx(ctx, o)
}

// look lets RunJob check the stage twice, and returns the job.
func (s *shop) look(number int64) recoverability.Job {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	pool := begins{s.pool, func(before int) {
		if before == 2 {
			stop()
		}
	}, new(int)}
	if _, err := s.store.RunJob(ctx, pool, s.op, number, nil); err != nil && !errors.Is(err, context.Canceled) {
		s.Error(err)
	}
	j, err := s.store.Job(s.Context(), s.pool, number)
	if err != nil {
		s.Fatal(err)
	}
	return j
}
