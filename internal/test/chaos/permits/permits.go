package permits

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
)

// Scenario is the package's.
var Scenario = lab.Scenario{
	Name: "permits", About: "processes that replay a log, killed with a transaction open",
	Full:  lab.Size{Workers: 3, Kills: 20, For: time.Minute},
	Quick: lab.Size{Workers: 2, Kills: 3, For: 10 * time.Second},
	Rules: []string{"different", "too few"},
	Run:   permits, Work: become,
}

// become turns the worker process into the program, which keeps its process id. The program does not listen to its
// parent, and ends when its time is over.
func become(_ context.Context, w *lab.Worker) error {
	var args []string
	if err := w.Read(&args); err != nil {
		return err
	}
	return syscall.Exec(args[0], args, append(os.Environ(), "DATABASE_URL="+w.DSN+"&application_name="+w.Name))
}

func permits(ctx context.Context, s lab.Settings) error {
	dir, err := os.MkdirTemp("", "edda-permits-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, log := filepath.Join(dir, "permits"), filepath.Join(dir, "log.csv")
	return s.Try(ctx, lab.Trial{Server: pgdev.Options{Durable: true}, MayEnd: true,
		Prepare: func(ctx context.Context, l *lab.Lab) error {
			build := exec.CommandContext(ctx, "go", "build", "-o", binary,
				"github.com/edda-go/edda/internal/test/chaos/permits/replay")
			if out, err := build.CombinedOutput(); err != nil {
				return fmt.Errorf("build the program: %w: %s", err, out)
			}
			return writeLog(log, l.Random, 300, 3000)
		},
		Task:  lab.All([]string{binary, "-log", log, "-for", s.For.String()}),
		Break: kill,
		Judge: func(ctx context.Context, l *lab.Lab) error { return judge(ctx, l, binary, log) }})
}

// kill spreads the kills at random over the run. The last tenth is left: after its end there is nothing to kill.
func kill(ctx context.Context, l *lab.Lab) error {
	hung := time.AfterFunc(l.For+3*time.Minute, func() {
		for _, p := range l.Crew.Living() {
			l.Violate("hung", p.Name, "%s did not come to its end", p.Name)
			p.Kill()
		}
	})
	defer hung.Stop()
	moments := make([]time.Duration, l.Kills)
	for i := range moments {
		moments[i] = time.Duration((0.02 + 0.88*l.Random.Float64()) * float64(l.For))
	}
	slices.Sort(moments)
	begun := time.Now()
	for _, at := range moments {
		err := run.Sleep(ctx, time.Until(begun.Add(at)))
		for inFlight := false; err == nil && !inFlight; {
			if p := l.Crew.Any(l.Random); p != nil {
				inFlight, err = l.Crew.KillOpen(ctx, p)
			}
			err = errors.Join(err, run.Sleep(ctx, l.Between(time.Millisecond, 20*time.Millisecond)))
		}
		if err != nil {
			return err
		}
	}
	<-ctx.Done() // when one of each place has come to its end
	return nil
}

// judge has the program check its database against the log, from nothing else.
func judge(ctx context.Context, l *lab.Lab, binary, log string) error {
	verify := exec.CommandContext(ctx, binary, "-verify", "-log", log)
	verify.Env = append(os.Environ(), "DATABASE_URL="+l.Server.DSN())
	out, err := verify.CombinedOutput()
	l.Printf("%s", out)
	l.Expect(err == nil, "different", "replay -verify: %v", err)
	n := l.Blows(lab.Aborted)
	l.Expect(n >= l.Kills, "too few", "%d kills in flight, want %d: a longer -for gives more chances", n, l.Kills)
	return nil
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
		rows = append(rows, []string{"case-" + strconv.Itoa(no), "T" + strconv.Itoa(random.IntN(6)), at.Format(layout),
			deadline.Format(layout)})
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(file).WriteAll(rows), file.Close())
}
