package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// schedulesPage is the list of manifests.
type schedulesPage struct {
	Head
	State     string // the filter
	Prefix    string
	Manifests []scheduler.ManifestInfo
	After     string
	Counts    scheduler.RunCounts
	Groups    []groupRow
	Releases  []dispatch.Release // of each owner with several running releases

	shown view.Object
}

// groupRow is a group of manifests.
type groupRow struct {
	scheduler.GroupInfo
	Forms []act.Form
}

// JSON returns the output of the command.
func (p *schedulesPage) JSON() any { return p.shown }

const manifestsShown = 100

var manifestStates = []scheduler.ManifestState{
	scheduler.ManifestLive, scheduler.ManifestHeld, scheduler.ManifestPaused, scheduler.ManifestOrphan,
}

// Schedules reads manifests in the order of their names, and the runs that have not ended.
func (s *Source) Schedules(ctx context.Context, a Ask) (Page, error) {
	if s.Scheduler == nil {
		return nil, missing("These pages have no scheduler.")
	}
	p := &schedulesPage{State: a.Query.Get("state"), Prefix: a.Query.Get("prefix")}
	p.Head = head("schedules", "Schedules", command("edda manifest list", "state", p.State, "prefix", p.Prefix)).
		audited("manifest", "")
	if p.State != "" && !slices.Contains(manifestStates, scheduler.ManifestState(p.State)) {
		return nil, wrong(fmt.Sprintf("%s is not a state of manifests.", view.Escape(view.Shortened(p.State, 40))))
	}
	f := scheduler.ManifestFilter{
		State: scheduler.ManifestState(p.State), Prefix: p.Prefix, After: a.Query.Get("after"), Limit: manifestsShown,
	}
	var err error
	if p.Manifests, err = s.Scheduler.Manifests(ctx, f); err != nil {
		return nil, err
	}
	if len(p.Manifests) == manifestsShown {
		p.After = p.Manifests[manifestsShown-1].Name
	}
	p.shown = view.Manifests(p.Manifests, manifestsShown).View().JSON
	if p.Counts, err = s.Scheduler.Counts(ctx); err != nil {
		return nil, err
	}
	groups, err := s.Scheduler.Groups(ctx)
	for _, g := range groups {
		p.Groups = append(p.Groups, groupRow{g, act.ManifestGroup(g)})
	}
	if err != nil {
		return nil, err
	}
	p.Releases, err = releasesBeside(ctx, s)
	return p, err
}

// releasesBeside returns the releases of each owner that has several running releases.
func releasesBeside(ctx context.Context, s *Source) ([]dispatch.Release, error) {
	all, err := dispatch.Releases(ctx, s.Pool, s.Schema, "")
	running := map[string]int{}
	for _, r := range all {
		if len(r.Programs) > 0 {
			running[r.Owner]++
		}
	}
	return slices.DeleteFunc(all, func(r dispatch.Release) bool {
		return running[r.Owner] < 2 || len(r.Programs) == 0
	}), err
}

// manifestPage is the page of one manifest.
type manifestPage struct {
	Head
	Manifest scheduler.ManifestInfo
	Waits    []string
	Next     []time.Time
	Runs     []scheduler.RunInfo
	Body     []byte
	Forms    []act.Form

	shown view.Object
}

// JSON returns the output of the command, with the next due times and the last runs.
func (p *manifestPage) JSON() any { return p.shown }

const (
	timesShown = 10
	runsShown  = 20
)

// Manifest reads one manifest, why it does not fire, when it will, and its last runs.
func (s *Source) Manifest(ctx context.Context, a Ask) (Page, error) {
	if s.Scheduler == nil {
		return nil, missing("These pages have no scheduler.")
	}
	name := a.Path("manifest")
	m, err := s.Scheduler.Manifest(ctx, name)
	if err != nil {
		return nil, faultOf(err, fmt.Sprintf("There is no manifest %s.", view.Escape(view.Shortened(name, 130))))
	}
	p := &manifestPage{
		Head: head("schedules", name, withBody(a, "edda manifest show "+words.Quoted(name))).
			audited("manifest", name),
		Manifest: m, Waits: m.Waits(),
	}
	whole := m.Body
	if m.Body = s.Body(m.Kind, m.Body); a.Bodies {
		p.Body, _ = cut(m.Body)
		p.Forms = act.Manifest(m, editable(whole, m.Body))
	} else {
		p.Forms = act.Manifest(m, nil)
	}
	if p.Next, err = s.Scheduler.Next(ctx, name, timesShown); err != nil {
		return nil, err
	}
	if p.Runs, err = s.Scheduler.Runs(ctx, scheduler.RunFilter{Manifest: name, Limit: runsShown}); err != nil {
		return nil, err
	}
	p.shown = append(view.Manifest(m, a.Bodies).JSON, "next", view.DueTimes(name, p.Next).JSON[3],
		"runs", view.Runs(p.Runs, runsShown+1).View().JSON[1])
	return p, nil
}

// runPage is the page of one run.
type runPage struct {
	Head
	Run   scheduler.RunInfo
	Body  []byte
	Forms []act.Form

	shown view.Object
}

// JSON returns the output of the command.
func (p *runPage) JSON() any { return p.shown }

// Run reads one run with its attempts.
func (s *Source) Run(ctx context.Context, a Ask) (Page, error) {
	id, err := saga.ParseID(a.Path("id"))
	if err != nil || s.Scheduler == nil {
		return nil, missing("The address does not contain the id of a run, which is a UUID.")
	}
	r, err := s.Scheduler.RunOf(ctx, id)
	if err != nil {
		return nil, faultOf(err, fmt.Sprintf("There is no run %s. Edda deletes runs some time after their end.", id))
	}
	p := &runPage{Head: head("schedules", "Run of "+r.Manifest, withBody(a, "edda run show "+id.String())).
		audited("run", id.String()), Run: r, Forms: act.Run(r)}
	if r.Body = s.Body(r.Kind, r.Body); a.Bodies {
		p.Body, _ = cut(r.Body)
	}
	p.shown = view.Run(r, a.Bodies).JSON
	return p, nil
}

// scheduleSentences returns the problems of schedules.
func scheduleSentences(ctx context.Context, s *Source) (all []sentence, err error) {
	if s.Scheduler == nil {
		return nil, nil
	}
	found, err := dispatch.Troubles(ctx, s.Pool, s.Schema)
	for _, t := range found {
		names := strings.Join(t.Manifests, ", ")
		if more := t.Of - len(t.Manifests); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		one := sentence{State: t.Kind, About: names, Since: t.Since, Link: "manifests"}
		if t.Of == 1 {
			one.Link = "manifests/" + segment(t.Manifests[0])
		}
		one.Text = troubleText(t)
		all = append(all, one)
	}
	return all, err
}

// troubleText describes a problem, and its remedy.
func troubleText(t dispatch.Trouble) string {
	switch t.Kind {
	case "dead":
		return words.Of(t.Times, "run") + " dead: the schedule does not fire until an operator retries or cancels it"
	case "timed_out":
		return words.Of(t.Times, "run") + " timed out in the last 24 hours. The handler may still be running beside " +
			"the next run: raise Timeout, or divide the work, and retry the unfinished part"
	case "lost":
		return words.Of(t.Times, "attempt") + " lost in the last 24 hours, because the handler sent no heartbeat. " +
			"Look for processes that have died or hang"
	case "skipped":
		return "due times passed without a run in the last 24 hours: the previous run had not ended, or no scheduler " +
			"was running. Make the interval longer, or set Overlap or MisfireAll"
	}
	return "became an orphan in the last 24 hours: no running program declares it. Start a program that does. If a " +
		"release has dropped it on purpose, you need not do anything"
}
