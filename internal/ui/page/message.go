package page

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// messagePage is the page of one message.
type messagePage struct {
	Head
	ID       saga.ID
	Info     history.Message
	Places   []placed
	Attempts []attempted
	Body     []byte // nil if it is not kept, or not to be shown
	Cut      int    // bytes that are left out
	Headers  []recoverability.Header
	Trace    string // id of its trace

	shown view.Object
}

// placed is the place of a message in one endpoint.
type placed struct {
	State    string
	Endpoint string
	Text     string
	Letter   int64
	Forms    []act.Form
}

// attempted is one attempt of a message.
type attempted struct {
	In       incoming
	At       time.Time
	Endpoint string
	Saga     string
	Key      string
	Version  int64
}

// JSON returns the output of the command.
func (m *messagePage) JSON() any { return m.shown }

// Queued reports whether the message is in a queue.
func (m *messagePage) Queued() bool {
	return slices.ContainsFunc(m.Places, func(p placed) bool {
		return slices.Contains(inQueue, whereabouts.State(p.State))
	})
}

// mostBody is how much of a body is shown.
const mostBody = 64 << 10

// Message reads the place of a message and its fate.
func (s *Source) Message(ctx context.Context, a Ask) (Page, error) {
	id, err := saga.ParseID(a.Path("id"))
	if err != nil {
		return nil, missing("The address does not contain the id of a message, which is a UUID.")
	}
	due, err := numberOf(a.Query.Get("due"))
	if err != nil {
		return nil, err
	}
	known := history.Message{ID: id}
	if due > 0 {
		known.Due = time.UnixMicro(due)
	}
	m, err := s.Op.History().Near().MessageOf(ctx, known)
	if err != nil {
		return nil, err
	}
	if !m.Known() {
		return nil, missing(fmt.Sprintf("Message %s: %s", id, m.Places[0].Says()))
	}
	p := &messagePage{
		Head: head("message", m.Info.Kind+" "+id.String(), withBody(a, "edda history find "+id.String())).
			audited("message", id.String()),
		ID: id, Info: m.Info,
	}
	if p.Attempts, err = attemptsOf(ctx, s, a, m); err != nil {
		return nil, err
	}
	for _, place := range m.Places {
		at := placed{
			State: string(place.State), Endpoint: place.Endpoint, Text: place.Says(), Letter: place.Letter,
		}
		if slices.Contains(inQueue, place.State) {
			at.Forms = act.Message(id, place.Endpoint)
		}
		p.Places = append(p.Places, at)
	}
	if err := addBody(ctx, s, a, p, &m); err != nil {
		return nil, err
	}
	mask(s, a, &m)
	p.shown = view.Trace(m, a.Bodies).JSON
	if p.Cut > 0 {
		p.shown = append(p.shown, "body_left_out", p.Cut)
	}
	return p, nil
}

// inQueue lists the states of a message that can be cancelled.
var inQueue = []whereabouts.State{
	whereabouts.Waiting, whereabouts.Delayed, whereabouts.Retrying, whereabouts.Parked, whereabouts.InHand,
}

func attemptsOf(ctx context.Context, s *Source, a Ask, m whereabouts.Message) (all []attempted, err error) {
	var sent []history.Message
	for _, e := range m.Attempts {
		for _, out := range e.Sent {
			if len(sent) < mostFollowed {
				sent = append(sent, out)
			}
		}
	}
	b := builder{source: s, ask: a, found: map[saga.ID]*whereabouts.Message{}, now: time.Now()}
	if len(sent) > 0 {
		found, err := s.Op.History().Near().Messages(ctx, sent...)
		if err != nil {
			return nil, err
		}
		for n := range found {
			b.found[found[n].ID] = &found[n]
		}
	}
	for _, e := range m.Attempts {
		all = append(all, attempted{
			In: b.in(&e), At: e.At, Endpoint: e.Endpoint, Saga: e.Saga, Key: e.Key, Version: e.Version,
		})
	}
	return all, nil
}

// addBody adds the kept part of the body, and the headers if they are available: in a queue, or in a dead letter.
func addBody(ctx context.Context, s *Source, a Ask, p *messagePage, m *whereabouts.Message) error {
	body := m.Info.Body
	for _, place := range m.Places {
		if place.Letter == 0 {
			continue
		}
		l, err := s.Op.DeadLetters().Show(ctx, place.Letter)
		if err != nil {
			continue // it was retried a moment ago
		}
		p.Headers, _ = l.Headers() // a header that cannot be read is shown on the page of the letter
		if body == nil {
			body = l.Body
		}
	}
	p.Trace = traceOf(p.Headers)
	if a.Bodies {
		p.Body, p.Cut = cut(s.Body(m.Info.Kind, body))
	}
	return nil
}

// cut returns the beginning of a body, up to a whole character, and how many bytes are left out.
func cut(body []byte) (beginning []byte, left int) {
	if len(body) <= mostBody {
		return body, 0
	}
	beginning = body[:mostBody]
	for len(beginning) > mostBody-utf8.UTFMax && !utf8.RuneStart(body[len(beginning)]) {
		beginning = beginning[:len(beginning)-1]
	}
	return beginning, len(body) - len(beginning)
}

// traceOf returns the id of the trace in a header traceparent, or "" if no header is valid.
func traceOf(headers []recoverability.Header) string {
	at := slices.IndexFunc(headers, func(h recoverability.Header) bool { return h.Name == "traceparent" })
	if at < 0 {
		return ""
	}
	return traceID(headers[at].Value)
}

// traceID reads the trace's id of a traceparent: 00-32 hex digits-16 hex digits-flags.
func traceID(parent string) string {
	if len(parent) < 55 || parent[2] != '-' || parent[35] != '-' {
		return ""
	}
	id := parent[3:35]
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return id
}

// mask applies Redact to the bodies of a message and of the messages it has sent.
func mask(s *Source, a Ask, m *whereabouts.Message) {
	clean := func(of *history.Message) {
		if !a.Bodies {
			of.Body = nil
		}
		of.Body, _ = cut(s.Body(of.Kind, of.Body))
	}
	clean(&m.Info)
	m.Attempts = slices.Clone(m.Attempts)
	for n := range m.Attempts {
		e := &m.Attempts[n]
		e.Sent = slices.Clone(e.Sent)
		clean(&e.Info)
		for k := range e.Sent {
			clean(&e.Sent[k])
		}
	}
}

// conversationPage is the tree of the messages that a message has caused.
type conversationPage struct {
	Head
	Asked saga.ID
	Count int
	More  bool
	Roots []node

	shown view.View
}

// node is a message in a tree.
type node struct {
	ID      saga.ID
	Kind    string
	Asked   bool // its id was requested
	Places  []placed
	Saga    string // the saga of an instance that it changed
	Key     string
	Version int64
	Failed  int           // number of attempts
	After   time.Duration // between the first message's send and the handling of this one
	Took    time.Duration // duration of its last handler
	Groups  []kindGroup
}

// kindGroup holds the messages of one kind that a message has sent.
type kindGroup struct {
	Kind   string
	Count  int
	Folded bool
	Parts  []share
	Nodes  []node
}

// JSON returns the output of the command.
func (c *conversationPage) JSON() any { return c.shown.JSON }

// Mermaid returns the output of the command with --mermaid.
func (c *conversationPage) Mermaid() string { return c.shown.Mermaid }

// mostOfTree is how many messages of a conversation are read.
const mostOfTree = 1000

// Conversation reads the tree of a message.
func (s *Source) Conversation(ctx context.Context, a Ask) (Page, error) {
	id, err := saga.ParseID(a.Path("id"))
	if err != nil {
		return nil, missing("The address does not contain the id of a message or a conversation, which is a UUID.")
	}
	tree, ok, err := s.Op.History().Near().Conversation(ctx, id, mostOfTree)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, missing(fmt.Sprintf("There is no message and no conversation %s.", id))
	}
	c := &conversationPage{
		Head: head("message", "Conversation", "edda history conversation "+id.String()), Asked: id, Count: tree.Count,
		More: tree.More, shown: view.Conversation(tree),
	}
	for _, n := range tree.Roots {
		began := n.Info.Sent
		c.Roots = append(c.Roots, c.node(n, began, 0))
	}
	return c, nil
}

// mostDeep is how many levels of a tree are shown. Messages below have a link of their own.
const mostDeep = 60

func (c *conversationPage) node(n *whereabouts.Node, began time.Time, level int) node {
	out := node{ID: n.ID, Kind: n.Info.Kind, Asked: n.ID == c.Asked}
	for _, p := range n.Places {
		out.Places = append(out.Places, placed{
			State: string(p.State), Endpoint: p.Endpoint, Text: p.Says(), Letter: p.Letter,
		})
	}
	for _, e := range n.Attempts {
		if e.Fate == history.Retried {
			out.Failed++
		}
		out.Took = e.Took
		if !began.IsZero() {
			out.After = max(e.At.Sub(began), 0)
		}
		if e.Saga != "" {
			out.Saga, out.Key, out.Version = e.Saga, e.Key, e.Version
		}
	}
	if level >= mostDeep {
		c.More = c.More || len(n.Effects) > 0
		return out
	}
	for _, g := range n.Effects {
		f := kindGroup{Kind: g.Kind, Count: g.Count, Folded: g.Folded}
		for _, state := range []whereabouts.State{
			whereabouts.Dead, whereabouts.Retrying, whereabouts.Waiting, whereabouts.Parked, whereabouts.InHand,
			whereabouts.Delayed, whereabouts.Handled, whereabouts.Relayed, whereabouts.Ingested, whereabouts.Discarded,
			whereabouts.Cancelled, whereabouts.Gone, whereabouts.Unknown,
		} {
			if g.States[state] > 0 {
				f.Parts = append(f.Parts, share{string(state), g.States[state]})
			}
		}
		for _, below := range g.Nodes {
			f.Nodes = append(f.Nodes, c.node(below, began, level+1))
		}
		out.Groups = append(out.Groups, f)
	}
	return out
}

// Mentions returns a short name of a message for a sentence.
func (n node) Mentions() string {
	if n.Kind == "" {
		return "(unknown kind)"
	}
	return words.Quoted(n.Kind)
}
