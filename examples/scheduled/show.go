package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/scheduler"
)

// show is one performance: what is declared, until when, and what must come of it.
type show struct {
	*database
	settings
	story  *story
	store  *scheduler.Store
	leases *scheduler.Leases
	until  time.Time // by the database's clock
	due    map[string][]time.Time
}

func perform(ctx context.Context, s settings, out io.Writer) error {
	return demo.WithDatabase(ctx, "scheduled", tables, func(d *demo.Database) error {
		sql, err := load(d.Own)
		if err != nil {
			return err
		}
		p := &show{database: &database{d, sql}, settings: s, story: &story{out: out, begun: time.Now()}}
		if err := p.declare(ctx); err != nil {
			return err
		}
		if err := p.play(ctx); err != nil {
			return err
		}
		return p.judge(ctx, out)
	})
}

// declare makes the queues and the manifests before any server runs, so that it is known what each is due first. The
// servers declare the same once more, as they do at each start, and change nothing.
func (p *show) declare(ctx context.Context) error {
	var now time.Time
	if err := p.Pool.QueryRow(ctx, p.sql.Get("now")).Scan(&now); err != nil {
		return fmt.Errorf("ask for the time: %w", err)
	}
	p.until = now.Add(p.lasting).Truncate(time.Millisecond)
	host, err := server{Name: "parent", Schema: p.Own, Night: p.night, Until: p.until}.host(p.Pool)
	if err != nil {
		return err
	}
	if err := host.Install(ctx); err != nil {
		return err
	}
	if p.store, err = scheduler.NewStore(p.Pool, scheduler.StoreOptions{Schema: p.Edda}); err != nil {
		return err
	}
	if p.leases, err = scheduler.NewLeases(p.Pool, p.Edda); err != nil {
		return err
	}
	declared := manifests(p.night, p.until)
	if _, err := p.store.Sync(ctx, owner, groups(), declared); err != nil {
		return err
	}
	return p.expect(ctx, declared)
}

// expect computes all due times from the declarations and the first of each. A report is expected for each night of its
// parent.
func (p *show) expect(ctx context.Context, declared []scheduler.Manifest) error {
	stored, err := p.store.Manifests(ctx, scheduler.ManifestFilter{Owner: owner})
	if err != nil {
		return err
	}
	p.due = map[string][]time.Time{}
	for _, m := range declared {
		at := slices.IndexFunc(stored, func(s scheduler.ManifestInfo) bool { return s.Name == m.Name })
		if at < 0 {
			return fmt.Errorf("manifest %s was declared, and is not stored", m.Name)
		}
		if first := stored[at].Due; !first.IsZero() {
			if p.due[m.Name], err = scheduler.Occurrences(m, first, p.until); err != nil {
				return err
			}
		}
	}
	for _, c := range currencies {
		p.due[reportName(c)] = p.due[settleName(c)]
	}
	return nil
}

// grace is how long the servers may take after the last due time.
const grace = time.Minute

// play runs the servers until all that was due has been done, and kills one in the middle.
func (p *show) play(ctx context.Context) error {
	p.story.tell("a night each %v, %d of them until %s, %d currencies each, at most %d at a time", p.night,
		len(p.due[settleName(currencies[0])]), p.until.Format(time.TimeOnly), len(currencies), groupMax)
	spec := server{DSN: p.DSN, Schema: p.Own, Night: p.night, Until: p.until}
	servers := procs.NewWorkers(2, spec.job, procs.Options{
		Away:    p.night / 2,
		Started: func(s *procs.Process) { p.story.tell("%s starts, process %d", s.Name, s.Pid()) },
	})
	all := run.NewGroup(ctx)
	all.Go(servers.Run)
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		if err := run.Sleep(ctx, p.lasting/2); err != nil {
			return err
		}
		return errors.Join(p.strike(ctx, servers), p.untilDone(ctx))
	})
	err := all.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted: nothing was checked")
	}
	return err
}

const look = 20 * time.Millisecond

// strike kills the server that evaluates, as soon as settlements are at work.
func (p *show) strike(ctx context.Context, servers *procs.Workers) error {
	for deadline := time.Now().Add(p.lasting); time.Now().Before(deadline); {
		working, err := p.number(ctx, "working")
		if err != nil {
			return err
		}
		held, err := p.leases.List(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(held, func(l scheduler.LeaseInfo) bool {
			return l.Name == scheduler.LeaseName &&
				l.Held
		})
		if working > 0 && at >= 0 {
			if victim := holder(servers, held[at].Holder); victim != nil {
				p.story.tell("%s, which evaluates, is killed while %d settlements are at work", victim.Name, working)
				victim.Kill()
				return nil
			}
		}
		if err := run.Sleep(ctx, look); err != nil {
			return err
		}
	}
	return errors.New("no settlement was at work when a server was to be killed")
}

// holder is the server that holds a lease under a name that begins with its own.
func holder(servers *procs.Workers, name string) *procs.Process {
	for _, s := range servers.Living() {
		if strings.HasPrefix(name, s.Name) {
			return s
		}
	}
	return nil
}

// untilDone waits until nothing is due any more and every run has ended but the dead one.
func (p *show) untilDone(ctx context.Context) error {
	// so that rates has the time not to fire
	if err := run.Sleep(ctx, p.lasting-time.Since(p.story.begun)); err != nil {
		return err
	}
	for deadline := time.Now().Add(p.lasting + grace); ; {
		left, err := p.number(ctx, "left_open")
		if err != nil {
			return err
		}
		if left == 0 {
			p.story.tell("all that was due is done")
			return nil
		}
		if time.Now().After(deadline) {
			p.story.tell("%d manifests and runs are still open; it is checked all the same", left)
			return nil
		}
		if err := run.Sleep(ctx, look); err != nil {
			return err
		}
	}
}

// story tells what happens, and when.
type story struct {
	out   io.Writer
	begun time.Time
	mu    sync.Mutex // guards out
}

func (s *story) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, "%5.1f s  %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}
