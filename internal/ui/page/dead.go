package page

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/recoverability"
)

// deadPage is the list of groups of dead letters.
type deadPage struct {
	Head
	Endpoint, Kind string // the filter
	Groups         []recoverability.LetterGroup
	Count          int64
	Capped         bool
	After          string // continue after this group
	Jobs           []recoverability.Job
	Forms          []act.Form

	shown view.Object
}

// JSON returns the output of the command.
func (d *deadPage) JSON() any { return d.shown }

const jobsShown = 10

// Dead reads the groups, the largest first.
func (s *Source) Dead(ctx context.Context, a Ask) (Page, error) {
	f := recoverability.GroupFilter{
		Endpoint: a.Query.Get("endpoint"), Kind: a.Query.Get("kind"), After: a.Query.Get("after"), Notes: true,
	}
	groups, next, err := s.Op.DeadLetters().Groups(ctx, f)
	if err != nil {
		return nil, err
	}
	shell := command("edda dead group", "endpoint", f.Endpoint, "kind", f.Kind)
	d := &deadPage{Head: head("dead", "Dead letters", shell).audited("dead", ""),
		Endpoint: f.Endpoint, Kind: f.Kind, Groups: groups, After: next}
	slices.SortStableFunc(d.Groups, func(a, b recoverability.LetterGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last))
	})
	for _, g := range groups {
		d.Count, d.Capped = d.Count+g.Count, d.Capped || g.Capped
	}
	if len(groups) > 0 {
		d.Forms = act.Letters(f.Endpoint, f.Kind)
	}
	d.shown = view.LetterGroups(groups, next).View().JSON
	d.Jobs, err = s.Op.DeadLetters().Jobs(ctx, jobsShown)
	return d, err
}

// command returns a command with the flags that have a value.
func command(text string, flags ...string) string {
	for n := 0; n+1 < len(flags); n += 2 {
		if flags[n+1] != "" {
			text += " --" + flags[n] + " " + words.Quoted(flags[n+1])
		}
	}
	return text
}

// groupPage is one group of dead letters.
type groupPage struct {
	Head
	Group   recoverability.LetterGroup
	Known   bool // it has letters now
	Letters []recoverability.Letter
	After   int64 // continue after this number, 0 at the end
	Forms   []act.Form
	shown   view.Object
}

// JSON returns the output of the command.
func (g *groupPage) JSON() any { return g.shown }

// Group reads one group: its example, and its letters a page at a time.
func (s *Source) Group(ctx context.Context, a Ask) (Page, error) {
	name := a.Path("group")
	after, err := numberOf(a.Query.Get("after"))
	if err != nil {
		return nil, err
	}
	letters, err := s.Op.DeadLetters().List(ctx, recoverability.LetterFilter{Group: name, After: after})
	if err != nil {
		return nil, err
	}
	if len(letters) == 0 {
		return nil, missing(fmt.Sprintf("There is no group %s of dead letters. Its letters were retried, edited or "+
			"discarded, or the group never existed.", view.Escape(view.Shortened(name, 40))))
	}
	g := &groupPage{
		Head:    head("dead", "Group "+name, "edda dead list --group "+words.Quoted(name)).audited("dead", ""),
		Letters: letters, shown: view.Letters(letters, 0).View().JSON,
	}
	if len(letters) == deadletter.DefaultLimit {
		g.After = letters[len(letters)-1].Number
	}
	groups, _, err := s.Op.DeadLetters().Groups(ctx, recoverability.GroupFilter{
		After: name[:len(name)-1], Limit: namesakes, Notes: true})
	for _, found := range groups {
		if found.Name == name {
			g.Group, g.Known = found, true
		}
	}
	g.Forms = act.Group(name, g.Group.Note.Text)
	return g, err
}

// namesakes is how many groups may have names that differ only in the last digit.
const namesakes = 16

func numberOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, wrong(fmt.Sprintf("%s is not a number.", view.Escape(view.Shortened(text, 40))))
	}
	return n, nil
}

// letterPage is one dead letter.
type letterPage struct {
	Head
	Letter  recoverability.Letter
	Headers []recoverability.Header
	Faulty  string // why the header cannot be read
	Body    []byte
	Size    int
	Cut     int
	Trace   string
	Forms   []act.Form
	shown   view.Object
}

// Lived returns for how long the message was tried.
func (l *letterPage) Lived() time.Duration {
	if l.Letter.FirstFailed.IsZero() {
		return 0
	}
	return max(l.Letter.Died.Sub(l.Letter.FirstFailed), 0)
}

// JSON returns the output of the command.
func (l *letterPage) JSON() any { return l.shown }

// Letter reads one dead letter by its number.
func (s *Source) Letter(ctx context.Context, a Ask) (Page, error) {
	number, err := strconv.ParseInt(a.Path("number"), 10, 64)
	if err != nil {
		return nil, missing("The address does not contain the number of a dead letter.")
	}
	found, err := s.Op.DeadLetters().Show(ctx, number)
	if err != nil {
		return nil, faultOf(err, fmt.Sprintf("There is no dead letter %d. It was retried, edited or discarded, or it "+
			"never existed.", number))
	}
	l := &letterPage{
		Head: head("dead", fmt.Sprintf("Dead letter %d", number),
			withBody(a, fmt.Sprintf("edda dead show %d", number))).audited("dead", strconv.FormatInt(number, 10)),
		Size: len(found.Body),
	}
	if l.Headers, err = found.Headers(); err != nil {
		l.Faulty = err.Error()
	}
	l.Trace = traceOf(l.Headers)
	whole := found.Body
	if found.Body = s.Body(found.Kind, found.Body); !a.Bodies {
		found.Body = nil
	}
	l.Forms = act.Letter(found, editable(whole, found.Body))
	l.Letter = found
	if a.Bodies {
		l.Body, l.Cut = cut(found.Body)
	}
	found.Body = l.Body
	l.shown = view.Letter(found, a.Bodies).JSON
	if !a.Bodies {
		l.shown[slices.Index(l.shown, any("size"))+1] = l.Size
	}
	if l.Cut > 0 {
		l.shown[slices.Index(l.shown, any("size"))+1] = len(l.Letter.Body)
		l.shown = append(l.shown, "body_left_out", l.Cut)
	}
	return l, nil
}

// editable returns a body for a field: only if all of it is shown, and a browser sends it back unchanged.
func editable(whole, shown []byte) []byte {
	if !bytes.Equal(whole, shown) || len(whole) > mostBody || !utf8.Valid(whole) || bytes.ContainsAny(whole, "\x00\r") {
		return nil
	}
	return whole
}

// ErrorParts returns the first line of an error, and the rest.
func ErrorParts(text string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return first, rest
}
