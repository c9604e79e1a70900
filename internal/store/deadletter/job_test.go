package deadletter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// office is a schema with many dead letters and a table that retries go to.
type office struct {
	*testing.T
	pool   *pgxpool.Pool
	store  *deadletter.Store
	schema pg.Schema
	resend resender
}

func newOffice(t *testing.T, letters ...recoverability.Letter) *office {
	t.Helper()
	pool, schema := pgtest.Database(t)
	store := deadletter.New(schema)
	table := schema.Render("CREATE TABLE :schema.resent (endpoint text, id text, header bytea, body bytea); GRANT " +
		"ALL ON :schema.resent TO PUBLIC")
	if _, err := pgtest.Pool(t).Exec(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	write(t, pool, store, letters...)
	return &office{T: t, pool: pool, store: store, schema: schema,
		resend: resender{insert: schema.Render("-- name: resend\nINSERT INTO :schema.resent VALUES ($1, $2, $3, $4)")}}
}

// numbered returns n letters, of each endpoint in turn.
func numbered(n int, endpoints ...string) (letters []recoverability.Letter) {
	for i := range n {
		letters = append(letters, recoverability.Letter{
			Endpoint: endpoints[i%len(endpoints)], Kind: "k", MessageID: saga.ID{byte(i >> 8), byte(i), 1},
			Header: []byte("{}"), Body: []byte("{}"),
			Error: fmt.Sprint("no article ", i),
		})
	}
	return letters
}

func (o *office) job(j recoverability.Job) int64 {
	o.Helper()
	number, err := o.store.NewJob(o.Context(), o.pool, j)
	if err != nil {
		o.Fatal(err)
	}
	return number
}

func (o *office) run(number int64) recoverability.Job {
	o.Helper()
	j, err := o.store.RunJob(o.Context(), o.pool, o.resend, number, nil)
	if err != nil {
		o.Fatal(err)
	}
	return j
}

// count reads one number.
func (o *office) count(sql string) (n int) {
	o.Helper()
	if err := o.pool.QueryRow(o.Context(), o.schema.Render(sql)).Scan(&n); err != nil {
		o.Fatal(err)
	}
	return n
}

// want checks that each letter is in exactly one place.
func (o *office) want(dead, resent, discarded int) {
	o.Helper()
	got := fmt.Sprintf("%d dead, %d sent again (%d messages), %d discarded",
		o.count("SELECT count(*) FROM :schema.dead_letter"),
		o.count("SELECT count(*) FROM :schema.resent"), o.count("SELECT count(DISTINCT id) FROM :schema.resent"),
		o.count("SELECT count(*) FROM :schema.discarded"))
	if want := fmt.Sprintf("%d dead, %d sent again (%d messages), %d discarded", dead, resent, resent,
		discarded); got != want {
		o.Errorf("got %s\nwant %s", got, want)
	}
}

func TestJobEndsWhatItsFilterChooses(t *testing.T) {
	t.Parallel()
	o := newOffice(t, numbered(450, "orders", "stock", "mail")...)
	number := o.job(recoverability.Job{Action: recoverability.JobRetry,
		Filter: recoverability.LetterFilter{Endpoint: "stock"}})
	// died after the job was created
	write(t, o.pool, o.store, recoverability.Letter{Endpoint: "stock", MessageID: saga.ID{15: 9}})
	j := o.run(number)
	if j.State != recoverability.JobDone || j.Ended != 150 || j.Kept != 0 || j.Error != "" {
		t.Errorf("%+v", j)
	}
	o.want(301, 150, 0)
	if again := o.run(number); again.Ended != 150 || !again.Changed.Equal(j.Changed) {
		t.Errorf("a second run: %+v", again)
	}
	group := list(t, o.pool, o.store, recoverability.LetterFilter{Endpoint: "mail"})[0].Group
	number = o.job(recoverability.Job{Action: recoverability.JobDiscard,
		Filter: recoverability.LetterFilter{Group: group},
		Reason: "a load test"})
	if j := o.run(number); j.Ended != 150 || j.Filter.Group != group || j.Reason != "a load test" {
		t.Errorf("%+v", j)
	}
	o.want(151, 150, 150)
	if got := discarded(t, o.pool, o.store, recoverability.LetterFilter{Limit: 1})[0]; got.Endpoint != "mail" ||
		got.Reason != "a load test" {
		t.Errorf("%+v", got)
	}
}

// An endpoint that is no longer installed does not keep other letters from being retried, and no letter is lost.
func TestJobKeepsWhatItCannotRetry(t *testing.T) {
	t.Parallel()
	o := newOffice(t, numbered(250, "orders", "nowhere")...)
	j := o.run(o.job(recoverability.Job{Action: recoverability.JobRetry}))
	if j.State != recoverability.JobDone || j.Ended != 125 || j.Kept != 125 || !strings.Contains(j.Error, "nowhere") {
		t.Errorf("%+v", j)
	}
	o.want(125, 125, 0)
	if j := o.run(o.job(recoverability.Job{Action: recoverability.JobRetry})); j.Ended != 0 || j.Kept != 125 {
		t.Errorf("of what no queue takes it says %+v", j)
	}
}

// A foreign letter that is too large for a queue does not keep other letters from being retried, and is not lost.
func TestJobKeepsWhatNoQueueTakes(t *testing.T) {
	t.Parallel()
	letters := numbered(20, "orders")
	letters[3].Kind = strings.Repeat("k", 256)
	letters[5].Header = bytes.Repeat([]byte("x"), 2<<20+1)
	letters[7].Body = bytes.Repeat([]byte("x"), 16<<20+1)
	o := newOffice(t, letters...)
	for _, number := range []int64{4, 6, 8} {
		err := o.store.Retry(t.Context(), o.pool, o.resend, number)
		if !errors.Is(err, saga.ErrTooLarge) {
			t.Errorf("retry letter %d: %v, want ErrTooLarge", number, err)
		}
	}
	j := o.run(o.job(recoverability.Job{Action: recoverability.JobRetry}))
	if j.State != recoverability.JobDone || j.Ended != 17 || j.Kept != 3 ||
		!strings.Contains(j.Error, "bytes, limit") {
		t.Errorf("%+v", j)
	}
	o.want(3, 17, 0)
}

// Three programs run one job, while operators retry the same letters one by one and a second job selects them too.
func TestJobsAndPeopleEndEachLetterOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, numbered(600, "orders", "stock")...)
	first, second := o.job(recoverability.Job{Action: recoverability.JobRetry}),
		o.job(recoverability.Job{Action: recoverability.JobDiscard, Reason: "x"})
	var all sync.WaitGroup
	for _, number := range []int64{first, first, first, second} {
		all.Go(func() { o.run(number) })
	}
	for by := range 2 {
		all.Go(func() {
			for n := int64(1); n <= 600; n += 7 {
				if err := o.store.Retry(t.Context(), o.pool, o.resend, n+int64(by)); err != nil &&
					!errors.Is(err, deadletter.ErrNotFound) {
					t.Errorf("retry by hand: %v", err)
				}
			}
		})
	}
	all.Wait()
	resent := o.count("SELECT count(*) FROM :schema.resent")
	o.want(0, resent, 600-resent)
	a, b := o.run(first), o.run(second)
	if a.Ended+b.Ended > 600 || b.Ended != int64(600-resent) {
		t.Errorf("the jobs say %d and %d of %d sent again", a.Ended, b.Ended, resent)
	}
}

// A program is killed before and after each of its statements, and a second one continues: each letter is sent once.
func TestJobSurvivesEveryCut(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]recoverability.Job{
		"rate":   {Action: recoverability.JobRetry, Rate: 30}, // steps of three
		"canary": {Action: recoverability.JobRetry, Plan: []int{2, 3}},
	} {
		t.Run(name, func(t *testing.T) { survivesEveryCut(t, job) })
	}
}

func survivesEveryCut(t *testing.T, job recoverability.Job) {
	t.Parallel()
	proxy, dsn := pgtest.Proxy(t)
	attempt := func(o *office, number int64) error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		_, err = o.store.RunJob(t.Context(), conn, o.resend, number, nil)
		return err
	}
	const letters = 7
	proxy.Set()
	clean := newOffice(t, numbered(letters, "orders", "stock")...)
	if err := attempt(clean, clean.job(job)); err != nil {
		t.Fatal(err)
	}
	clean.want(0, letters, 0)
	faults := faultproxy.Walk(proxy.Seen(), faultproxy.Cut)
	if len(faults) < 40 {
		t.Fatalf("only %d moments to cut at: %v", len(faults), proxy.Seen())
	}
	o := clean
	for _, fault := range faults {
		o.refill(numbered(letters, "orders", "stock"))
		number := o.job(job)
		proxy.Set(fault)
		err := attempt(o, number)
		if len(proxy.Fired()) != 1 {
			continue // this statement did not occur: the waits of two runs differ
		}
		if err == nil {
			t.Errorf("%v: the run says nothing of the cut", fault)
		}
		if j := o.run(number); j.State != recoverability.JobDone || j.Ended != letters {
			t.Errorf("%v: %+v", fault, j)
		}
		if o.want(0, letters, 0); t.Failed() {
			t.Fatalf("after %v", fault)
		}
	}
}

// refill deletes the resent messages and writes new letters.
func (o *office) refill(letters []recoverability.Letter) {
	o.Helper()
	if _, err := o.pool.Exec(o.Context(), o.schema.Render("DELETE FROM :schema.resent")); err != nil {
		o.Fatal(err)
	}
	write(o.T, o.pool, o.store, letters...)
}

// The rate holds for all callers that run a job together, and a job that did not run for a while does not catch up.
func TestJobKeepsItsRate(t *testing.T) {
	t.Parallel()
	o := newOffice(t, numbered(60, "orders")...)
	number := o.job(recoverability.Job{Action: recoverability.JobRetry, Rate: 100})
	if _, err := pgtest.Pool(t).Exec(t.Context(), o.schema.Render("UPDATE :schema.dead_letter_job SET due = now() "+
		"- interval '1 day'")); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { o.run(number) })
	}
	all.Wait()
	// Six steps of ten letters: the first is due at once, the last 500 ms after it.
	if took := time.Since(begun); took < 490*time.Millisecond {
		t.Errorf("60 letters at 100 a second took %v", took)
	}
	o.want(0, 60, 0)
}

func TestJobIsCancelled(t *testing.T) {
	t.Parallel()
	o := newOffice(t, numbered(10, "orders")...)
	number := o.job(recoverability.Job{Action: recoverability.JobRetry, Rate: 1})
	j, err := o.store.RunJob(t.Context(), o.pool, o.resend, number, func(j recoverability.Job) {
		if j.Ended == 1 {
			if err := o.store.CancelJob(t.Context(), o.pool, number); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || j.State != recoverability.JobCancelled || j.Ended != 1 {
		t.Errorf("%+v, %v", j, err)
	}
	o.want(9, 1, 0)
	if err := o.store.CancelJob(t.Context(), o.pool, number); !errors.Is(err, deadletter.ErrNoJob) {
		t.Errorf("cancelled twice: %v", err)
	}
	shown, err := o.store.Job(t.Context(), o.pool, number)
	if err != nil || shown.State != recoverability.JobCancelled ||
		shown.Rate != 1 {
		t.Errorf("%+v, %v", shown, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	number = o.job(recoverability.Job{Action: recoverability.JobRetry, Rate: 1})
	if _, err := o.store.RunJob(ctx, o.pool, o.resend, number, func(recoverability.Job) { stop() }); !errors.Is(err,
		context.Canceled) {
		t.Errorf("its context has ended: %v", err)
	}
	if jobs, err := o.store.Jobs(t.Context(), o.pool, 0); err != nil || len(jobs) != 2 ||
		jobs[0].State != recoverability.JobOpen || jobs[0].Number != number {
		t.Errorf("%+v, %v", jobs, err)
	}
	if n, err := o.store.PruneJobs(t.Context(), o.pool, 0, 10); err != nil || n != 2 {
		t.Errorf("%d rows were pruned, %v; want the job that has ended, and the letter that it sent", n, err)
	}
	paused := o.schema.Render("UPDATE :schema.dead_letter_job SET state = 'paused'")
	if _, err := pgtest.Pool(t).Exec(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	if err := o.store.CancelJob(t.Context(), o.pool, number); err != nil {
		t.Errorf("a job that has paused itself: %v", err)
	}
}

func TestJobsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for want, j := range map[string]recoverability.Job{
		`Action is "send"`: {Action: "send"}, "Rate is -1": {Action: recoverability.JobRetry, Rate: -1},
		"Rate is NaN":         {Action: recoverability.JobRetry, Rate: math.NaN()},
		"Rate is 1e-09":       {Action: recoverability.JobRetry, Rate: 1e-9},
		"needs a Reason":      {Action: recoverability.JobDiscard},
		"has To or a Plan":    {Action: recoverability.JobDiscard, Reason: "x", To: "stock"},
		"Plan has 0 stages":   {Action: recoverability.JobRetry, Plan: []int{}},
		"a stage of Plan has": {Action: recoverability.JobRetry, Plan: []int{1, 0}},
		"no endpoint":         {Action: recoverability.JobRetry, To: "nowhere"},
		"the year 0": {Action: recoverability.JobRetry,
			Filter: recoverability.LetterFilter{DiedBefore: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		if _, err := o.store.NewJob(t.Context(), o.pool, j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", j, err, want)
		}
	}
	if _, err := o.store.RunJob(t.Context(), o.pool, o.resend, 99, nil); !errors.Is(err, deadletter.ErrNoJob) {
		t.Errorf("%v, want ErrNoJob", err)
	}
	if _, err := o.store.Job(t.Context(), o.pool, 99); !errors.Is(err, deadletter.ErrNoJob) {
		t.Errorf("%v, want ErrNoJob", err)
	}
	if j := o.run(o.job(recoverability.Job{Action: recoverability.JobRetry})); j.State != recoverability.JobDone ||
		j.Ended != 0 {
		t.Errorf("nothing to do: %+v", j)
	}
}

// Letters with a large body, header or error end in steps that fit into memory.
func TestJobTakesLargeLettersInTurn(t *testing.T) {
	t.Parallel()
	letters := numbered(30, "orders")
	for n := range letters {
		if large := []byte(strings.Repeat("x", 900_000)); n%2 == 0 {
			letters[n].Body = large
		} else {
			letters[n].Header = large
		}
	}
	o := newOffice(t, letters...)
	steps, before := 0, int64(0)
	j, err := o.store.RunJob(t.Context(), o.pool, o.resend, o.job(recoverability.Job{Action: recoverability.JobRetry}),
		func(j recoverability.Job) {
			if steps++; j.Ended-before > 9 {
				t.Errorf("%d letters of 900,000 bytes in one step", j.Ended-before)
			}
			before = j.Ended
		})
	if err != nil || j.Ended != 30 || steps < 4 {
		t.Errorf("%+v in %d steps, %v", j, steps, err)
	}
	o.want(0, 30, 0)
}
