package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/saga"
)

// instancePage is the page of one instance, living or ended.
type instancePage struct {
	Head    `json:"-"`
	Life    lifeShown   `json:"life"`
	Lives   []lifeShown `json:"lives"`
	Version int64       `json:"version"`
	Changed time.Time   `json:"changed,omitzero"`
	Waits   []wait      `json:"waits"`
	MayGet  []string    `json:"may_get"`
	Rows    []change    `json:"timeline"`
	Older   saga.ID     `json:"-"`
	Newest  bool        `json:"-"` // the newest versions are shown
	State   stateShown  `json:"-"`
	Faulty  string      `json:"row_error,omitempty"`
	Until   time.Time   `json:"remembered_until,omitzero"`
	Compare *compared   `json:"compare,omitempty"`
	Forms   []act.Form  `json:"-"`

	shown view.Object
}

// stateShown is a state, and how many bytes of it are left out.
type stateShown struct {
	Text []byte
	Cut  int
}

// wait is something that an instance waits for, and why it has not come.
type wait struct {
	State string    `json:"state"`
	Kind  string    `json:"kind"`
	Name  string    `json:"name,omitempty"` // of a timeout
	ID    saga.ID   `json:"message"`
	Text  string    `json:"says"`
	Due   time.Time `json:"due,omitzero"` // of a timeout

	Forms []act.Form `json:"-"`
}

// compared is the difference of two versions.
type compared struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Diff string `json:"diff"`
}

// JSON returns the output of the command, and the page's additional fields.
func (p *instancePage) JSON() any {
	return append(slices.Clone(p.shown), "waits", p.Waits, "may_get", p.MayGet)
}

// Living reports whether the instance has not ended.
func (p *instancePage) Living() bool { return p.Life.Ended.IsZero() }

const (
	mostLives    = 20
	versionsRead = 50
)

// One reads the page of an instance by the saga's name and its key; of the requested life, or the newest.
func (s *Source) One(ctx context.Context, a Ask) (Page, error) {
	name, key := a.Path("saga"), a.Path("key")
	if name == "" {
		name, key = a.Query.Get("saga"), a.Query.Get("key")
	}
	of, lives, err := s.life(ctx, name, key, a.Query.Get("life"))
	if err != nil {
		return nil, err
	}
	before, err := idOf(a.Query.Get("before"))
	if err != nil {
		return nil, err
	}
	p := &instancePage{
		Head: head("sagas", name+" / "+key, "edda history show "+words.Quoted(name)+" "+words.Quoted(key)).
			audited("", name+"/"+key),
		Life: lifeRow(of), Lives: []lifeShown{}, Newest: before.IsZero(), Waits: []wait{}, MayGet: []string{},
	}
	for _, l := range lives {
		p.Lives = append(p.Lives, lifeRow(l))
	}
	if of.ID != lives[0].ID {
		p.Command += " --life " + of.ID.String()
	}
	timeline, older, err := s.Op.History().Timeline(ctx, of, before, versionsRead)
	if err != nil {
		return nil, err
	}
	p.Older = older
	found, err := s.messagesOf(ctx, timeline)
	if err != nil {
		return nil, err
	}
	b := builder{source: s, ask: a, found: found, now: p.Now}
	p.Rows = b.rows(timeline)
	p.shown = view.Timeline(of, lives, s.versions(a, timeline), older).JSON
	if err := addInstance(ctx, s, a, p); err != nil {
		return nil, err
	}
	if p.Newest && p.Living() {
		p.Waits = append(b.waits(timeline), p.Waits...)
		p.MayGet = mayGet(s, name, timeline)
	}
	p.Compare, err = b.compare(timeline, a.Query.Get("from"), a.Query.Get("to"))
	return p, err
}

// life returns the requested life, and the lives of its key.
func (s *Source) life(ctx context.Context, name, key, id string) (of history.Life, lives []history.Life, err error) {
	if lives, err = s.Op.History().Lives(ctx, name, key, mostLives); err != nil {
		return of, nil, err
	}
	text := fmt.Sprintf("There is no instance %s %s. It never existed, or it has ended and the history does not keep "+
		"it.", view.Escape(name), view.Escape(key))
	if len(lives) == 0 {
		return of, nil, missing(text)
	}
	if id == "" {
		return lives[0], lives, nil
	}
	asked, err := saga.ParseID(id)
	if err != nil {
		return of, nil, wrong("The id of the instance is not a UUID.")
	}
	of, ok, err := s.Op.History().Life(ctx, asked)
	if err == nil && (!ok || of.Saga != name || of.Key != key) {
		err = missing(text)
	}
	return of, lives, err
}

// idOf reads an optional id.
func idOf(text string) (id saga.ID, err error) {
	if text == "" {
		return id, nil
	}
	if id, err = saga.ParseID(text); err != nil {
		return id, wrong(fmt.Sprintf("%s is not a UUID.", view.Escape(view.Shortened(text, 60))))
	}
	return id, nil
}

// addInstance adds the fields of a living instance's row.
func addInstance(ctx context.Context, s *Source, a Ask, p *instancePage) error {
	if n := len(p.Rows); n > 0 {
		p.Version, p.Changed = p.Rows[n-1].Version, p.Rows[n-1].At
	}
	listed, ok, err := s.Op.Instances().Show(ctx, p.Life.Saga, p.Life.Key)
	if err != nil || !ok || listed.Instance.ID != p.Life.ID {
		return err
	}
	i := listed.Instance
	p.Version, p.Changed, p.Until = i.Version, listed.Changed, i.RememberedUntil()
	if a.Bodies {
		p.State.Text, p.State.Cut = cut(s.State(i.Saga, i.State))
		if n := len(p.Rows); n > 0 && p.Rows[n-1].Version == i.Version && p.Rows[n-1].State != nil {
			// the history has masked secrets, even if the definition is not available here
			p.State = stateShown{p.Rows[n-1].State, p.Rows[n-1].Cut}
		}
	}
	if listed.Faulty != nil {
		p.Faulty = listed.Faulty.Error()
	}
	seen := act.Seen{Saga: i.Saga, Key: i.Key, Version: i.Version, Over: !p.Until.IsZero()}
	if a.Bodies && len(i.State) <= mostBody && history.Diff(p.State.Text, i.State) == "" {
		seen.State = i.State
	}
	p.Forms = act.Instance(seen)
	pending := slices.Clone(i.Pending)
	slices.SortFunc(pending, func(a, b saga.Pending) int { return a.Due.Compare(b.Due) })
	for _, t := range pending {
		w := wait{State: "timer", Kind: t.Kind, Name: t.Name, ID: t.ID, Due: t.Due.UTC(), Text: "timeout"}
		w.Forms = act.Timeout(i.Saga, i.Key, cmp.Or(t.Name, t.ID.String()))
		p.Waits = append(p.Waits, w)
	}
	return nil
}

// mayGet returns the kinds that an instance has handlers for, and that are not in its timeline.
func mayGet(s *Source, name string, timeline []history.Version) []string {
	kinds := []string{}
	d := s.definitions[name]
	if d == nil {
		return kinds
	}
	seen := map[string]bool{}
	for _, v := range timeline {
		for _, e := range v.Entries {
			seen[e.Info.Kind] = true
		}
	}
	for _, k := range d.Kinds() {
		if !seen[k.Kind] && k.Role != saga.RoleStart && k.Role != saga.RoleTimeout {
			seen[k.Kind] = true
			kinds = append(kinds, k.Kind)
		}
	}
	return kinds
}

// mostFollowed is how many messages of a timeline are looked up, the newest first.
const mostFollowed = 500

// messagesOf looks up the messages that a timeline has sent, and its messages that have failed.
func (s *Source) messagesOf(
	ctx context.Context, timeline []history.Version,
) (map[saga.ID]*whereabouts.Message, error) {
	var known []history.Message
	seen := map[saga.ID]bool{}
	add := func(m history.Message) {
		if len(known) < mostFollowed && !seen[m.ID] {
			seen[m.ID], known = true, append(known, m)
		}
	}
	for _, v := range slices.Backward(timeline) {
		for _, e := range v.Entries {
			if e.Fate != history.Handled {
				add(e.Info)
			}
			for _, m := range e.Sent {
				add(m)
			}
		}
	}
	found := make(map[saga.ID]*whereabouts.Message, len(known))
	if len(known) == 0 {
		return found, nil
	}
	all, err := s.Op.History().Near().Messages(ctx, known...)
	for n := range all {
		found[all[n].ID] = &all[n]
	}
	return found, err
}

// versions returns a timeline as it may be shown: without bodies and states, or with the output of Redact.
func (s *Source) versions(a Ask, timeline []history.Version) []history.Version {
	all := slices.Clone(timeline)
	for n := range all {
		v := &all[n]
		if !a.Bodies {
			v.State, v.Before = nil, nil
			continue
		}
		v.State, v.Before = s.State(v.Saga, v.State), s.State(v.Saga, v.Before)
	}
	return all
}
