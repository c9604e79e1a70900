package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
)

// nowPage is the first page: problems, and a row for each endpoint.
type nowPage struct {
	Head      `json:"-"`
	Sentences []sentence    `json:"sentences"`
	Endpoints []endpointRow `json:"endpoints"`
}

// sentence is one problem, or the statement that there is no problem.
type sentence struct {
	// dead, paused, nobody, behind, unhandled, warning or well; of schedules dead, timed_out, lost, skipped or orphan
	State string    `json:"state"`
	About string    `json:"about"` // an endpoint, or manifests, "" for the whole system
	Text  string    `json:"text"`
	Since time.Time `json:"since,omitzero"`
	Link  string    `json:"-"`
}

// endpointRow is an endpoint in numbers.
type endpointRow struct {
	Name      string    `json:"endpoint"`
	State     string    `json:"state"`
	Relay     bool      `json:"relay"`
	Ready     int64     `json:"ready"`
	Delayed   int64     `json:"delayed"`
	Claimed   int64     `json:"claimed"`
	Parked    int64     `json:"parked"`
	Capped    bool      `json:"capped"`
	OldestDue time.Time `json:"oldest_due,omitzero"`
	Lag       Seconds   `json:"lag_seconds"`
	Dead      int64     `json:"dead"`
	Causes    int       `json:"dead_groups"`
	Processes int       `json:"processes"`
	Paused    time.Time `json:"paused_at,omitzero"`
	PausedBy  string    `json:"paused_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Pace      pace      `json:"pace,omitzero"`

	more bool      // there are at least Dead dead letters
	died time.Time // the first death

	of parts
}

// parts are the data of the rows.
type parts struct {
	queue     operate.QueueInfo
	settings  operate.EndpointSettings
	groups    []recoverability.LetterGroup
	processes []whereabouts.Process
	unhandled []operate.Unhandled
	left      int      // functions that do not return, in living processes
	leave     []string // processes with such functions
}

// CountTo is the largest number of messages of a queue, or letters of a group, that is counted. Above it the number
// of messages is an estimate.
const CountTo = 10_000

// MoreDead reports whether there are more dead letters than Dead.
func (r endpointRow) MoreDead() bool { return r.more }

// JSON returns the page itself.
func (n *nowPage) JSON() any { return n }

// Now reads the first page.
func (s *Source) Now(ctx context.Context, _ Ask) (Page, error) {
	rows, err := endpointsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := addPace(ctx, s, rows); err != nil {
		return nil, err
	}
	n := &nowPage{Head: head("now", "Now", "edda queue list"), Endpoints: rows, Sentences: []sentence{}}
	for _, r := range rows {
		n.Sentences = append(n.Sentences, r.sentences(n.Now)...)
	}
	pin, suffers, err := s.Op.Queues().Pin(ctx)
	if err != nil {
		return nil, err
	}
	if suffers && pin.Old() {
		n.Sentences = append(n.Sentences, sentence{
			State: "warning", Text: "Postgres cannot remove dead rows: " + pin.Holder() + ". " + pin.Remedy(),
			Link: "database",
		})
	}
	schedules, err := scheduleSentences(ctx, s)
	if err != nil {
		return nil, err
	}
	n.Sentences = append(n.Sentences, schedules...)
	slices.SortStableFunc(n.Sentences, func(a, b sentence) int { return cmp.Compare(rank[a.State], rank[b.State]) })
	if len(n.Sentences) == 0 && len(rows) > 0 {
		n.Sentences = append(n.Sentences, sentence{State: "well", Text: allWell(rows)})
	}
	return n, nil
}

// rank is the order of sentences.
var rank = map[string]int{"dead": 0, "nobody": 1, "behind": 2, "unhandled": 3, "paused": 4, "timed_out": 5, "lost": 5,
	"skipped": 5, "orphan": 5, "warning": 6}

func allWell(rows []endpointRow) string {
	return fmt.Sprintf("There are no problems: %s, no lag, no dead letters.",
		words.Of(int64(len(rows)), "endpoint"))
}

// late is the lag above which a running endpoint is behind.
const late = 30 * time.Second

// sentences returns the problems of an endpoint.
func (r *endpointRow) sentences(now time.Time) (all []sentence) {
	say := func(state, text string, since time.Time, link string) {
		all = append(all, sentence{State: state, About: r.Name, Text: text, Since: since, Link: link})
	}
	there := "endpoints/" + segment(r.Name)
	if r.Dead > 0 {
		more := ""
		if r.more {
			more = " or more"
		}
		causes := "one cause"
		if r.Causes > 1 {
			causes = words.Of(int64(r.Causes), "cause")
		}
		say("dead", fmt.Sprintf("%s%s dead, %s", words.Of(r.Dead, "message"), more, causes), r.died,
			"dead?endpoint="+escapeQuery(r.Name))
	}
	switch waits := r.Ready + r.Parked; {
	case !r.Paused.IsZero():
		text := "paused" + view.Shortened(whereabouts.Pause{By: r.PausedBy}.Who(), 60)
		if r.Reason != "" {
			text += ": " + view.Shortened(r.Reason, 120)
		}
		if waits > 0 {
			text += fmt.Sprintf(" (%s)", waiting(waits))
		}
		say("paused", text, r.Paused, there)
	case r.Processes == 0 && waits+r.Delayed > 0:
		say("nobody", "no process runs it, and "+waiting(waits+r.Delayed), time.Time{}, there)
	case time.Duration(r.Lag) > late:
		say("behind", fmt.Sprintf("lag of %s, %s", words.Span(time.Duration(r.Lag)), due(r.Ready)), time.Time{}, there)
	}
	if len(r.of.unhandled) > 0 {
		text, since := unhandledKinds(r.of.unhandled)
		say("unhandled", text, since, there)
	}
	if r.of.left > 0 {
		say("warning", r.saysLeft(), time.Time{}, "processes")
	}
	return all
}

// saysLeft returns the sentence about functions of the program that do not return.
func (r *endpointRow) saysLeft() string {
	says, names := " do not return and keep running", "names them; a restart ends them"
	if r.of.left == 1 {
		says, names = " does not return and keeps running", "names it; a restart ends it"
	}
	in := r.of.leave[0]
	if more := len(r.of.leave) - 1; more > 0 {
		in += fmt.Sprintf(" and %d more", more)
	}
	return words.Of(int64(r.of.left), "function") + " of the program" + says + " in " + in + ", whose log " + names +
		". Give each call of a different system a time limit"
}

// unhandledKinds returns the sentence about messages that wait because no program handles their kinds, and since when
// they wait.
func unhandledKinds(all []operate.Unhandled) (text string, since time.Time) {
	const named = 3
	n, more, kinds := 0, "", []string{}
	for _, u := range all {
		if n += u.Messages; u.More {
			more = " or more"
		}
		if len(kinds) < named {
			kinds = append(kinds, view.Shortened(u.Kind, 60))
		}
		if since.IsZero() || u.Since.Before(since) {
			since = u.Since
		}
	}
	if len(all) > named {
		kinds = append(kinds, "…")
	}
	wait := " wait"
	if n == 1 {
		wait = " waits"
	}
	return fmt.Sprintf("no program of this endpoint handles %s, and %s%s%s. Without a handler they become dead letters",
		strings.Join(kinds, ", "), words.Of(int64(n), "message"), more, wait), since
}

func waiting(n int64) string {
	if n == 1 {
		return "1 message waits"
	}
	return words.Count(n) + " messages wait"
}

func due(n int64) string {
	if n == 1 {
		return "1 message is due"
	}
	return words.Count(n) + " messages are due"
}

// endpointsOf reads a row for each endpoint.
func endpointsOf(ctx context.Context, s *Source) ([]endpointRow, error) {
	queues, err := s.Op.Queues().List(ctx)
	if err != nil {
		return nil, err
	}
	set, err := s.Op.Endpoints().List(ctx)
	if err != nil {
		return nil, err
	}
	groups, _, err := s.Op.DeadLetters().Groups(ctx, recoverability.GroupFilter{CountTo: CountTo})
	if err != nil {
		return nil, err
	}
	processes, err := s.Op.History().Processes(ctx)
	if err != nil {
		return nil, err
	}
	unhandled, err := s.Op.Endpoints().Unhandled(ctx, withDelayed(queues)...)
	if err != nil {
		return nil, err
	}
	rows := make([]endpointRow, 0, len(queues))
	for _, q := range queues {
		r := endpointRow{
			Name: q.Endpoint, Relay: q.Relay, Ready: q.Ready, Delayed: q.Delayed, Claimed: q.Claimed, Parked: q.Parked,
			Capped: q.Capped, OldestDue: q.OldestDue, Lag: Seconds(q.Lag), of: parts{queue: q},
		}
		r.addDead(groups)
		r.addProcesses(processes)
		r.of.unhandled = slices.DeleteFunc(slices.Clone(unhandled),
			func(u operate.Unhandled) bool { return u.Endpoint != r.Name })
		for _, e := range set {
			if e.Endpoint != r.Name {
				continue
			}
			if r.of.settings = e; e.Paused {
				r.Paused, r.PausedBy, r.Reason = e.PausedAt, e.PausedBy, e.Reason
			}
		}
		r.State = r.state()
		rows = append(rows, r)
	}
	return rows, nil
}

// withDelayed returns the endpoints of queues that have messages which are due later.
func withDelayed(queues []operate.QueueInfo) (names []string) {
	for _, q := range queues {
		if q.Delayed > 0 {
			names = append(names, q.Endpoint)
		}
	}
	return names
}

func (r *endpointRow) addDead(groups []recoverability.LetterGroup) {
	for _, g := range groups {
		if g.Endpoint != r.Name {
			continue
		}
		r.of.groups = append(r.of.groups, g)
		r.Dead, r.Causes, r.more = r.Dead+g.Count, r.Causes+1, r.more || g.Capped
		if r.died.IsZero() || g.First.Before(r.died) {
			r.died = g.First
		}
	}
}

func (r *endpointRow) addProcesses(processes []whereabouts.Process) {
	for _, p := range processes {
		at := slices.Index(p.Endpoints, r.Name)
		if at < 0 {
			continue
		}
		if r.of.processes = append(r.of.processes, p); !p.Lives {
			continue
		}
		r.Processes++
		if n := p.Left[at]; n > 0 {
			r.of.left += n
			r.of.leave = append(r.of.leave, fmt.Sprintf("%s (process %d)", view.Shortened(p.Host, 60), p.PID))
		}
	}
}

func (r *endpointRow) state() string {
	switch {
	case !r.Paused.IsZero():
		return "paused"
	case r.Processes == 0:
		return "nobody"
	case time.Duration(r.Lag) > late:
		return "behind"
	}
	return "running"
}

// Word returns the state for people.
func (r endpointRow) Word() string {
	if r.State == "nobody" {
		return "no process"
	}
	return strings.ToLower(r.State)
}
