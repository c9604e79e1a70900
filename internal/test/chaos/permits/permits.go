package permits

import (
	"context"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/jackc/pgx/v5"
)

//go:embed permits.sql
var sqlText string

var sql = lab.SQL(sqlText)

// Scenario is the package's.
var Scenario = lab.Scenario{
	Name: "permits", About: "processes that replay a log, killed with a transaction open",
	Full:  lab.Size{Workers: 3, Kills: 20, For: time.Minute},
	Quick: lab.Size{Workers: 2, Kills: 3, For: 10 * time.Second},
	Run:   permits, Work: become,
}

// become turns the worker process into the example, which keeps its process id.
func become(_ context.Context, w *lab.Worker) error {
	var args []string
	if err := w.Read(&args); err != nil {
		return err
	}
	return syscall.Exec(args[0], args, append(os.Environ(), "DATABASE_URL="+w.DSN))
}

// play is one run of the example.
type play struct {
	*lab.Lab
	args []string // of the example, with the binary

	mu     sync.Mutex // guards now
	now    []*procs.Process
	killed map[*procs.Process]bool
}

func permits(ctx context.Context, s lab.Settings) error {
	l, err := lab.Open(ctx, s, pgdev.Options{Durable: true}, sql)
	if err != nil {
		return err
	}
	defer l.Close()
	dir, err := os.MkdirTemp("", "edda-permits-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, log := filepath.Join(dir, "permits"), filepath.Join(dir, "log.csv")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary,
		"github.com/edda-go/edda/internal/test/chaos/permits/replay")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the example: %w: %s", err, out)
	}
	if err := writeLog(log, l.Random, 300, 3000); err != nil {
		return err
	}
	p := &play{Lab: l, args: []string{binary, "-log", log, "-for", l.For.String()},
		now: make([]*procs.Process, l.Settings.Workers), killed: map[*procs.Process]bool{}}
	if err := p.run(ctx); err != nil {
		return err
	}
	return p.judge(ctx, binary, log)
}

// run keeps processes of the example running until one of each place has come to its end, and kills them meanwhile.
func (p *play) run(ctx context.Context) error {
	places, killing := run.NewGroup(ctx), run.NewGroup(ctx)
	for place := range p.now {
		places.Go(func(context.Context) error { return p.keep(place) })
	}
	killing.Go(p.kill)
	err := places.Wait()
	killing.Stop()
	return errors.Join(err, killing.Wait(), ctx.Err())
}

// keep starts the example again each time it was killed.
func (p *play) keep(place int) error {
	for life := 1; ; life++ {
		name := fmt.Sprintf("permits-%d-%d", place+1, life)
		e, err := procs.Start(p.Job(name, p.Server.DSN()+"&application_name="+name, p.args))
		if err != nil {
			return err
		}
		p.put(place, e)
		err = e.Stop(p.For + 3*time.Minute) // the example does not listen to its parent
		p.put(place, nil)
		p.mu.Lock()
		killed := p.killed[e]
		p.mu.Unlock()
		if err != nil || !killed {
			return err
		}
	}
}

func (p *play) put(place int, e *procs.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now[place] = e
}

// kill spreads the kills at random over the run. The last tenth is left: after its end there is nothing to kill.
func (p *play) kill(ctx context.Context) error {
	moments := make([]time.Duration, p.Kills)
	for i := range moments {
		moments[i] = time.Duration((0.02 + 0.88*p.Random.Float64()) * float64(p.For))
	}
	slices.Sort(moments)
	begun := time.Now()
	for _, at := range moments {
		if err := run.Sleep(ctx, time.Until(begun.Add(at))); err != nil {
			return err
		}
		for {
			inFlight, err := p.strike(ctx)
			if err != nil {
				return err
			}
			if inFlight {
				break
			}
			if err := run.Sleep(ctx, p.Between(time.Millisecond, 20*time.Millisecond)); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch is an open transaction of a process, as the database shows it.
type batch struct {
	Backend int
	XID     string // with its epoch
	Moved   string // when the session last began or ended to do anything
}

// A frozen process's session must stand still for some looks: on a busy machine a COMMIT may lie in the socket for a
// while before Postgres reads it.
const (
	looks    = 10
	lookWait = 10 * time.Millisecond
)

// strike freezes a process at a random moment, and kills it if it has a transaction open and stays at it.
func (p *play) strike(ctx context.Context) (inFlight bool, err error) {
	p.mu.Lock()
	e := p.now[p.Random.IntN(len(p.now))]
	p.mu.Unlock()
	if e == nil {
		return false, nil
	}
	e.Freeze()
	defer e.Thaw()
	var first batch
	for n := range looks {
		b, err := p.look(ctx, e)
		if err != nil || b == nil || n > 0 && *b != first {
			return false, err
		}
		first = *b
		if err := run.Sleep(ctx, lookWait); err != nil {
			return false, err
		}
	}
	p.mu.Lock()
	p.killed[e] = true
	p.mu.Unlock()
	if err := p.Kill(context.WithoutCancel(ctx), e); err != nil {
		return false, err
	}
	outcome := "in progress"
	err = lab.Await(ctx, 10*time.Second, "the end of the transaction of "+e.Name, func() (bool, error) {
		err := p.Row(ctx, sql.Get("outcome"), []any{first.XID}, &outcome)
		return outcome != "in progress", err
	})
	if err == nil && outcome == "aborted" {
		return true, p.Note(ctx, "aborted kill", e.Name)
	}
	return false, err
}

func (p *play) look(ctx context.Context, e *procs.Process) (*batch, error) {
	rows, err := p.Pool.Query(ctx, sql.Get("open_batch"), e.Name)
	if err != nil {
		return nil, fmt.Errorf("look for an open transaction of %s: %w", e.Name, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[batch])
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// judge has the example check its database against the log, from nothing else.
func (p *play) judge(ctx context.Context, binary, log string) error {
	verify := exec.CommandContext(ctx, binary, "-verify", "-log", log)
	verify.Env = append(os.Environ(), "DATABASE_URL="+p.Server.DSN())
	out, err := verify.CombinedOutput()
	p.Printf("%s", out)
	p.Expect(err == nil, "different", "replay -verify: %v", err)
	n := p.Blows("aborted kill")
	p.Expect(n >= p.Kills, "too few", "%d kills in flight, want %d: a longer -for gives more chances", n, p.Kills)
	return p.Conclude(ctx, "", sql, "different", "too few")
}

// writeLog writes a log like those of towns. Some events share their time, and some deadlines lie before the first
// event or after the last.
func writeLog(path string, random *rand.Rand, cases, events int) error {
	begin := time.Date(2011, 3, 1, 9, 0, 0, 0, time.FixedZone("", 3600))
	const layout = "2006-01-02 15:04:05.000000-07:00"
	rows := [][]string{{"case:concept:name", "concept:name", "time:timestamp", "case:deadline"}}
	for i := range events {
		no := i % cases
		if i >= cases {
			no = random.IntN(cases)
		}
		at := begin.Add(time.Duration(random.IntN(2000)) * time.Hour)
		deadline := begin.Add(time.Duration(no*3000/cases-300) * time.Hour)
		rows = append(
			rows,
			[]string{
				"case-" + strconv.Itoa(no),
				"T" + strconv.Itoa(random.IntN(6)),
				at.Format(layout),
				deadline.Format(layout),
			},
		)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(file).WriteAll(rows), file.Close())
}
