package whereabouts

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/saga"
)

// Conversation is the tree of messages that followed from a message.
type Conversation struct {
	Roots []*Node // the message from outside; several if pages between them are gone
	Count int     // number of messages
	More  bool    // there are more messages than requested
}

// Node is a message and the messages that its handlers sent.
type Node struct {
	Message
	Effects []Group
}

// Group has the messages of one kind that the handlers of one message sent.
type Group struct {
	Kind   string
	Count  int
	States map[State]int // number of messages by state; a message in several endpoints counts for each
	Folded bool          // Nodes has only some of them
	Nodes  []*Node
}

// Messages of one kind that one message has sent are folded if there are more than foldAbove. Then keptOfState of
// each state are kept.
const (
	foldAbove   = 10
	keptOfState = 2
)

// mostClimbed bounds the number of causes that are followed from a message.
const mostClimbed = 1000

// Conversation returns the tree of causes that contains a message, or the conversation with the id: at most most
// messages. ok is false if nothing is recorded about the id. It counts the messages before a queued one up to 1,000.
func (r *Reader) Conversation(
	ctx context.Context, id saga.ID, most int,
) (c Conversation, ok bool, err error) {
	err = r.look(ctx, func(s *snapshot) error {
		t := tree{snapshot: s, most: most, nodes: map[saga.ID]*Node{}}
		if err := t.grow(ctx, id); err != nil {
			return err
		}
		messages := make([]*Message, 0, len(t.nodes))
		for _, id := range t.order {
			messages = append(messages, &t.nodes[id].Message)
		}
		if err := s.find(ctx, mostBeforeInTree, messages...); err != nil {
			return err
		}
		c, ok = t.conversation()
		return nil
	})
	if err != nil {
		return Conversation{}, false, fmt.Errorf("read conversation %s: %w", id, pgerr.Explain(err))
	}
	return c, ok, nil
}

const mostBeforeInTree = 1000

// tree is built from its roots.
type tree struct {
	*snapshot
	most  int
	more  bool
	nodes map[saga.ID]*Node
	order []saga.ID
	roots []*Node
}

func (t *tree) node(id saga.ID) *Node {
	n := t.nodes[id]
	if n == nil {
		n = &Node{Message: Message{ID: id}}
		t.nodes[id] = n
		t.order = append(t.order, id)
	}
	return n
}

// grow adds the conversation of a message, from its first message. If pages in between are gone, it begins with the
// first recorded cause of the message.
func (t *tree) grow(ctx context.Context, id saga.ID) error {
	found, err := t.history.Messages(ctx, t.tx, id)
	if err != nil {
		return err
	}
	root, attempts := id, found[id]
	if len(attempts) > 0 {
		root = attempts[0].Info.Conversation
	} else if queued, err := t.locate(ctx, []*Message{{ID: id}}, 0); err != nil {
		return err
	} else if len(queued) > 0 {
		root = queued[0].info.Conversation
	}
	if err := t.add(ctx, root); err != nil || t.nodes[id] != nil {
		return err
	}
	if root != id && len(t.nodes[root].Attempts) == 0 { // nothing is recorded about it
		t.nodes, t.order, t.roots = map[saga.ID]*Node{}, nil, nil
	}
	top := id
	for range mostClimbed {
		if len(attempts) == 0 || attempts[0].Info.RelatedTo.IsZero() {
			break
		}
		above := attempts[0].Info.RelatedTo
		if found, err = t.history.Messages(ctx, t.tx, above); err != nil {
			return err
		}
		attempts = found[above]
		if len(attempts) > 0 {
			top = above
		}
	}
	return t.add(ctx, top)
}

// add adds a root and the messages that followed from it.
func (t *tree) add(ctx context.Context, root saga.ID) error {
	followed, err := t.history.Conversation(ctx, t.tx, root, max(t.most-len(t.nodes), 1))
	if err != nil {
		return err
	}
	t.more = t.more || followed.More
	t.roots = append(t.roots, t.node(root))
	for _, e := range followed.Attempts {
		n := t.node(e.Info.ID)
		n.Attempts = append(n.Attempts, e)
	}
	for _, m := range followed.Unseen {
		t.node(m.ID).Info = m
	}
	return nil
}

// conversation returns the tree after it has grown, and after the places of its messages were read.
func (t *tree) conversation() (c Conversation, ok bool) {
	senders := map[saga.ID]history.Entry{} // by the id of the sent message
	hanged := map[saga.ID]bool{}
	for _, n := range t.roots {
		hanged[n.ID] = true
	}
	for _, id := range t.order {
		sent := []*Node{}
		for _, e := range t.nodes[id].Attempts {
			for _, m := range e.Sent {
				if below := t.nodes[m.ID]; below != nil && !hanged[m.ID] {
					hanged[m.ID], senders[m.ID] = true, e
					sent = append(sent, below)
				}
			}
			for _, id := range e.Cancelled {
				if n := t.nodes[id]; n != nil && !n.Known() {
					n.Places = []Place{{State: Cancelled, Endpoint: e.Endpoint, At: e.At}}
				}
			}
		}
		t.nodes[id].Effects = groups(sent)
	}
	for id, e := range senders {
		if n := t.nodes[id]; !n.Known() && n.Places[0].Unread == "" {
			n.Places = []Place{lost(n, &e)}
		}
	}
	for _, n := range t.roots {
		ok = ok || n.Known() || len(n.Effects) > 0
	}
	for _, n := range t.nodes { // after all states were read
		for g := range n.Effects {
			n.Effects[g].fold()
		}
	}
	return Conversation{Roots: t.roots, Count: len(t.nodes), More: t.more}, ok
}

// lost returns the place of a message that was sent and was not found.
func lost(n *Node, by *history.Entry) Place {
	to := cmp.Or(n.Info.To, "an endpoint that handles "+n.Info.Kind)
	return Place{State: Gone, Endpoint: n.Info.To, Reason: fmt.Sprintf("It was sent to %s at %s. It is in "+
		"no queue any more, and the history has no later record of it: its endpoint, or its conversation, "+
		"keeps no history.", to, moment(by.At))}
}

// groups groups messages by kind, in the order of the first of each kind.
func groups(sent []*Node) (all []Group) {
	for _, n := range sent {
		at := slices.IndexFunc(all, func(g Group) bool { return g.Kind == n.Info.Kind })
		if at < 0 {
			at = len(all)
			all = append(all, Group{Kind: n.Info.Kind})
		}
		all[at].Nodes = append(all[at].Nodes, n)
	}
	return all
}

// fold counts the states, and keeps some nodes of each if there are many.
func (g *Group) fold() {
	g.Count, g.States = len(g.Nodes), map[State]int{}
	left := []*Node{}
	for _, n := range g.Nodes {
		rare := false
		for _, p := range n.Places {
			rare = rare || g.States[p.State] < keptOfState
			g.States[p.State]++
		}
		if rare {
			left = append(left, n)
		}
	}
	if g.Folded = g.Count > foldAbove; g.Folded {
		g.Nodes = left
	}
}
