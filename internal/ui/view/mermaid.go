package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
)

// mapMermaid returns a map as a flowchart of Mermaid. All kinds from one endpoint to another share one arrow.
func mapMermaid(m *operate.Map) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	ids := map[string]string{"": "outside"}
	for n, e := range m.Endpoints {
		id := fmt.Sprintf("e%d", n)
		ids[e.Name] = id
		label := mermaid(e.Name)
		if len(e.Sagas) > 0 {
			label += "<br/>" + mermaid(strings.Join(e.Sagas, ", "))
		}
		if e.Relay {
			fmt.Fprintf(&b, "  %s[/\"%s\"/]\n", id, label)
		} else {
			fmt.Fprintf(&b, "  %s[\"%s\"]\n", id, label)
		}
	}
	arrows := words.Arrows(m)
	if slices.ContainsFunc(arrows, func(a words.Arrow) bool { return a.From == "" }) {
		b.WriteString("  outside([\"outside\"])\n")
	}
	for _, a := range arrows {
		kinds := []string{}
		for _, kind := range a.Kinds {
			kinds = append(kinds, mermaid(kind))
		}
		fmt.Fprintf(&b, "  %s -->|\"%s\"| %s\n", ids[a.From], strings.Join(kinds, "<br/>"), ids[a.To])
	}
	return b.String()
}

// conversationMermaid returns a tree of causes as a flowchart of Mermaid. A group that the view folds is one node.
func conversationMermaid(c whereabouts.Conversation) string {
	t := drawn{}
	t.WriteString("flowchart TD\n")
	for _, n := range c.Roots {
		t.node(n, "")
	}
	return t.String()
}

// drawn is a flowchart that is being written.
type drawn struct {
	strings.Builder
	nodes int
}

// add writes a node below the node above, and returns its id.
func (t *drawn) add(above, text string) (id string) {
	id = fmt.Sprintf("m%d", t.nodes)
	t.nodes++
	fmt.Fprintf(&t.Builder, "  %s[\"%s\"]\n", id, text)
	if above != "" {
		fmt.Fprintf(&t.Builder, "  %s --> %s\n", above, id)
	}
	return id
}

func (t *drawn) node(n *whereabouts.Node, above string) {
	parts := []string{mermaid(cmp.Or(n.Info.Kind, "(unknown kind)"))}
	for _, p := range n.Places {
		parts = append(parts, mermaid(strings.TrimSpace(cmp.Or(shapes[p.State], "?")+" "+string(p.State)+" "+
			p.Endpoint)))
	}
	id := t.add(above, strings.Join(parts, "<br/>"))
	for _, g := range n.Effects {
		if g.Folded {
			t.add(id, fmt.Sprintf("%s ×%d<br/>%s", mermaid(g.Kind), g.Count, mermaid(statesText(g))))
			continue
		}
		for _, below := range g.Nodes {
			t.node(below, id)
		}
	}
}

// mermaid returns a text for quotes in Mermaid, whose escapes begin with #.
func mermaid(text string) string {
	return strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;").
		Replace(Escape(text))
}
