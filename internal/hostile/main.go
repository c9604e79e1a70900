package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/procs"
	edda "github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed hostile.sql
var sqlText string

// statement is one of hostile.sql, which names its schemas itself.
func statement(name string) string {
	schema, err := pg.ParseSchema("edda")
	if err != nil {
		panic(err)
	}
	statements, err := pg.Load(sqlText, schema)
	if err != nil {
		panic(err)
	}
	return statements.Get(name)
}

// settings are the flags.
type settings struct {
	length  time.Duration
	rate    int
	attacks int
	seed    uint64
	verbose bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if procs.IsWorker(workerVariable) {
		exit(work(ctx))
		return
	}
	s := settings{}
	flag.DurationVar(&s.length, "for", 10*time.Minute, "how long the run lasts; a fifth of it is quiet, to measure "+
		"what is normal")
	flag.IntVar(&s.rate, "rate", 200, "good messages a second, over all routes")
	flag.IntVar(&s.attacks, "attacks", 20, "hostile messages a second")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64N(1_000_000), "decides which attacks are drawn")
	flag.BoolVar(&s.verbose, "v", false, "print the logs of the workers")
	flag.Parse()
	exit(run(ctx, s))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

var errBroken = errors.New("the promise was broken")

const (
	engines      = 2
	drainWithin  = 3 * time.Minute // for what is left when the attack is over
	reportEvery  = 10 * time.Second
	quietPart    = 5 // one part in so many of the run is quiet
	tickInterval = 50 * time.Millisecond
)

func run(ctx context.Context, s settings) error {
	fmt.Printf("hostile: seed %d\n", s.seed)
	server, err := pgdev.Start(ctx, pgdev.Options{Private: true})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	pool, err := pgxpool.New(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := prepare(ctx, pool)
	if err != nil {
		return err
	}
	workers := procs.NewWorkers(engines+1, func(place, _ int) procs.Job {
		w := worker{DSN: server.DSN(), Gate: place == engines, Seed: s.seed, Rate: s.attacks}
		job := procs.Job{Name: fmt.Sprintf("worker-%d", place), Variable: workerVariable, Task: w}
		if s.verbose {
			job.Stderr = os.Stderr
		}
		return job
	}, procs.Options{})
	r := &race{settings: s, pool: pool, bus: b, dsn: server.DSN(), workers: workers}
	all := edda.NewGroup(ctx)
	all.Go(workers.Run) // fails when one of them ends
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		return r.run(ctx)
	})
	if err := all.Wait(); err != nil {
		return err
	}
	v, err := r.judge(ctx)
	if err != nil {
		return err
	}
	fmt.Println(v.line(s))
	if v.broken() {
		return errBroken
	}
	return nil
}

// prepare makes roles, schema, witness and queues.
func prepare(ctx context.Context, pool *pgxpool.Pool) (*bus.Bus, error) {
	if _, err := pool.Exec(ctx, statement("roles")); err != nil {
		return nil, err
	}
	if err := migrate.Up(ctx, pool, migrate.Options{}); err != nil {
		return nil, err
	}
	b, err := bus.New(pool, bus.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	for endpoint, kinds := range consumed {
		if err := b.InstallQueue(ctx, endpoint, kinds...); err != nil {
			return nil, err
		}
	}
	if err := b.InstallRelay(ctx, border, outgoing{}.Kind()); err != nil {
		return nil, err
	}
	grants, err := migrate.Grants("", migrate.Roles{Runtime: "hostile_runtime", Sender: "hostile_sender"})
	if err != nil {
		return nil, err
	}
	for _, script := range []string{grants, statement("create")} {
		if _, err := pool.Exec(ctx, script); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// race is good traffic and attacks, side by side.
type race struct {
	settings
	pool    *pgxpool.Pool
	bus     *bus.Bus
	dsn     string
	workers *procs.Workers

	sent         map[string]int // by route, so far
	quiet, under period
	refused      int
}

type period struct{ begin, end time.Time }

// run sends good messages all the time, and attacks after the quiet part.
func (r *race) run(ctx context.Context) error {
	a, err := newAttacker(ctx, r)
	if err != nil {
		return err
	}
	defer a.pool.Close()
	r.sent = map[string]int{}
	if err := r.warmUp(ctx); err != nil {
		return err
	}
	r.quiet = period{time.Now(), time.Now().Add(r.length / quietPart)}
	r.under = period{r.quiet.end, r.quiet.begin.Add(r.length)}
	report := r.quiet.begin
	var owed, owedAttacks float64
	for last := time.Now(); last.Before(r.under.end); {
		if err := edda.Sleep(ctx, tickInterval); err != nil {
			return err
		}
		now := time.Now()
		owed += now.Sub(last).Seconds() * float64(r.rate)
		if now.After(r.under.begin) {
			owedAttacks += now.Sub(last).Seconds() * float64(r.attacks) / 2 // the gate does the other half
		}
		last = now
		if err := r.sendGood(ctx, int(owed)); err != nil {
			return err
		}
		owed -= float64(int(owed))
		for ; owedAttacks >= 1; owedAttacks-- {
			if err := a.attack(ctx); err != nil {
				return err
			}
		}
		if now.After(report) {
			report = now.Add(reportEvery)
			r.progress(ctx)
		}
	}
	r.refused = a.refused
	for _, p := range r.workers.Living() {
		if err := p.WriteLine(cease); err != nil {
			return err
		}
	}
	return r.awaitEmpty(ctx)
}

// warmUp waits until every route has handled its first message.
func (r *race) warmUp(ctx context.Context) error {
	if err := r.sendGood(ctx, len(routes)); err != nil {
		return err
	}
	for done := 0; done < len(routes); {
		if err := edda.Sleep(ctx, tickInterval); err != nil {
			return err
		}
		if err := r.pool.QueryRow(ctx, "SELECT count(DISTINCT route) FROM witness.good").Scan(&done); err != nil {
			return err
		}
	}
	return nil
}

func (r *race) sendGood(ctx context.Context, n int) error {
	for range n {
		route := routes[(r.sent[batched]+r.sent[stepped]+r.sent[leased]+r.sent[relayed])%len(routes)]
		r.sent[route]++
		if _, err := r.bus.Send(ctx, goodMessage(route, r.sent[route])); err != nil {
			return fmt.Errorf("send a good message: %w", err)
		}
	}
	return nil
}

func (r *race) progress(ctx context.Context) {
	var good, attacks, dead, discarded int
	if err := r.pool.QueryRow(ctx, statement("progress")).Scan(&good, &attacks, &dead, &discarded); err != nil {
		fmt.Println("hostile:", err)
		return
	}
	phase := "quiet"
	if time.Now().After(r.under.begin) {
		phase = "under attack"
	}
	fmt.Printf("hostile: %s: good=%d attacks=%d dead=%d discarded=%d\n", phase, good, attacks, dead, discarded)
}
