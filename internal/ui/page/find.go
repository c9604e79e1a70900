package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Find lists the things that a text may name: an id, a key, a name.
type Find struct {
	Head  `json:"-"`
	Query string  `json:"id"`
	Found []match `json:"found"`
}

// match is one thing that the text names.
type match struct {
	Is      string `json:"is"`
	Says    string `json:"says"`
	Command string `json:"command"`
	Link    string `json:"-"`
}

// JSON returns the page itself, which has the fields of the command's output.
func (f *Find) JSON() any { return f }

// Only returns the page of the only match, "" if there are more or no matches.
func (f *Find) Only() string {
	if len(f.Found) != 1 {
		return ""
	}
	return f.Found[0].Link
}

// mostQuery is how long a searched text may be.
const mostQuery = 1200

// Find looks up a text.
func (s *Source) Find(ctx context.Context, a Ask) (Page, error) {
	query := strings.TrimSpace(a.Query.Get("q"))
	if len(query) > mostQuery {
		return nil, wrong("The text is too long to be a name, a key or an id.")
	}
	f := &Find{Head: head("find", "Find", ""), Query: query, Found: []match{}}
	if query == "" {
		return f, nil
	}
	looks := []func(context.Context, *Source, *Find) error{findName, findManifest, findKey}
	if id, err := saga.ParseID(query); err == nil {
		f.Command = "edda find " + query
		looks = []func(context.Context, *Source, *Find) error{
			func(ctx context.Context, s *Source, f *Find) error { return findID(ctx, s, f, id) }, findKey,
		}
	} else if number, err := strconv.ParseInt(query, 10, 64); err == nil && number > 0 {
		looks = append(looks, func(ctx context.Context, s *Source, f *Find) error {
			return findLetter(ctx, s, f, number)
		})
	}
	for _, look := range looks {
		if err := look(ctx, s, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Find) add(is, says, command, link string) {
	f.Found = append(f.Found, match{is, says, command, link})
}

func findLetter(ctx context.Context, s *Source, f *Find, number int64) error {
	l, err := s.Op.DeadLetters().Show(ctx, number)
	if fault := (Fault{}); errors.As(faultOf(err, ""), &fault) {
		return nil
	}
	if err == nil {
		f.add("dead letter", fmt.Sprintf("message %s of endpoint %s, dead since %s", l.MessageID, l.Endpoint,
			view.Moment(l.Died)), fmt.Sprintf("edda dead show %d", number), fmt.Sprintf("dead/%d", number))
	}
	return err
}

// findID looks up an id.
func findID(ctx context.Context, s *Source, f *Find, id saga.ID) error {
	life, ok, err := s.Op.History().Life(ctx, id)
	if err != nil {
		return err
	}
	if ok {
		f.addLife(life)
		return nil
	}
	if err := findRun(ctx, s, f, id); err != nil {
		return err
	}
	m, err := s.Op.History().Near().Message(ctx, id)
	if err != nil {
		return err
	}
	if !m.Known() {
		return nil
	}
	f.add("message", m.Info.Kind+": "+m.Places[0].Says(), "edda history find "+id.String(), "messages/"+id.String())
	if m.Info.Conversation == id && len(m.Attempts) > 0 {
		c, ok, err := s.Op.History().Near().Conversation(ctx, id, 2)
		if err == nil && ok && c.Count > 1 {
			f.add("conversation", "the message and its effects", "edda history conversation "+id.String(),
				"conversations/"+id.String())
		}
		return err
	}
	return nil
}

func findRun(ctx context.Context, s *Source, f *Find, id saga.ID) error {
	if s.Scheduler == nil {
		return nil
	}
	r, err := s.Scheduler.RunOf(ctx, id)
	if errors.Is(err, scheduler.ErrNoRun) {
		return nil
	}
	if err == nil {
		f.add("run", fmt.Sprintf("of manifest %s, %s", r.Manifest, r.State), "edda run show "+id.String(),
			"runs/"+id.String())
	}
	return err
}

func (f *Find) addLife(l history.Life) {
	f.add("instance", view.LifeText(l), fmt.Sprintf("edda history show %s %s --life %s", words.Quoted(l.Saga),
		words.Quoted(l.Key), l.ID), LifeOf(l.Saga, l.Key, l.ID))
}

// findName looks up an endpoint, a kind, a saga or a group of dead letters of that name.
func findName(ctx context.Context, s *Source, f *Find) error {
	queues, err := s.Op.Queues().List(ctx)
	if err != nil {
		return err
	}
	for _, q := range queues {
		switch {
		case q.Endpoint == f.Query:
			f.add("endpoint", "its queue, its settings, its processes", "edda queue peek "+words.Quoted(q.Endpoint),
				"endpoints/"+segment(q.Endpoint))
		case slices.Contains(q.Kinds, f.Query):
			f.add("kind", "handled by endpoint "+q.Endpoint, "edda queue peek "+words.Quoted(q.Endpoint),
				"endpoints/"+segment(q.Endpoint))
		}
	}
	names, err := sagaNames(ctx, s)
	if err != nil {
		return err
	}
	if slices.Contains(names, f.Query) {
		f.add("saga", "its instances", "edda saga list "+words.Quoted(f.Query), "sagas/"+segment(f.Query))
	}
	if !isGroup(f.Query) {
		return nil
	}
	_, err = s.Group(ctx, Ask{Path: func(string) string { return f.Query }})
	if fault := (Fault{}); errors.As(err, &fault) {
		return nil
	}
	if err == nil {
		f.add("group of dead letters", "dead letters with the same cause", "edda dead list --group "+f.Query,
			"dead/groups/"+f.Query)
	}
	return err
}

// isGroup reports whether a text has the form of a group's name: twelve hexadecimal digits.
func isGroup(text string) bool {
	return len(text) == 12 && strings.Trim(text, "0123456789abcdef") == ""
}

func findManifest(ctx context.Context, s *Source, f *Find) error {
	if s.Scheduler == nil {
		return nil
	}
	m, err := s.Scheduler.Manifest(ctx, f.Query)
	if errors.Is(err, scheduler.ErrNoManifest) {
		return nil
	}
	if err == nil {
		f.add("manifest", m.Schedule, "edda manifest show "+words.Quoted(m.Name), "manifests/"+segment(m.Name))
	}
	return err
}

// mostSagas is how many sagas are listed, and searched for a key.
const mostSagas = 100

// findKey looks up an instance by its key, in all sagas or in the saga named before the key.
func findKey(ctx context.Context, s *Source, f *Find) error {
	names, err := sagaNames(ctx, s)
	if err != nil {
		return err
	}
	for _, name := range names[:min(len(names), mostSagas)] {
		keys := []string{f.Query}
		if of, key, ok := split(f.Query); ok && of == name && key != "" {
			keys = append(keys, key)
		}
		for _, key := range keys {
			lives, err := s.Op.History().Lives(ctx, name, key, 1)
			if err != nil {
				return err
			}
			for _, l := range lives {
				f.add("instance", view.LifeText(l), "edda history show "+words.Quoted(name)+" "+words.Quoted(key),
					Instance(l.Saga, l.Key))
			}
		}
	}
	return nil
}
