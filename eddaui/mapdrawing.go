package eddaui

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/edda-go/edda/internal/ui/graph"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
)

// Sizes in a map, in pixels.
const (
	boxHeight  = 44
	boxLeast   = 96
	portSpace  = 16 // of an arrow at a box
	letter     = 8  // of a name, on average and with some space
	mostLetter = 26
)

// mapDrawing returns a map as SVG: a box for each endpoint, which links to its page, and an arrow for all kinds
// between two endpoints. Every element has a name, so that it can be read aloud.
func mapDrawing(root string, m operate.Map) template.HTML {
	d := mapped{root: root, m: &m, arrows: words.Arrows(&m), at: map[string]int{}}
	d.layOut()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="map" role="group" aria-label="%s and the messages between them" `+
		`width="%d" height="%d" viewBox="0 0 %[2]d %[3]d">`, words.Of(int64(len(m.Endpoints)), "endpoint"),
		d.graph.Width, d.graph.Height)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" ` +
		`orient="auto-start-reverse"><path d="M0 .5 8 4 0 7.5z"/></marker></defs>`)
	for n := range d.arrows {
		d.arrow(&b, n)
	}
	for n := range d.graph.Nodes {
		d.box(&b, n)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // text has escaped all other texts
}

// text escapes a text for HTML.
func text(of string) string { return template.HTMLEscapeString(view.Escape(of)) }

// short returns the beginning of a text that fits.
func short(of string) string { return text(view.Shortened(view.Escape(of), mostLetter)) }

// mapped is a map that is being drawn.
type mapped struct {
	root   string
	m      *operate.Map
	arrows []words.Arrow
	at     map[string]int // the numbers of nodes by the names of endpoints; "" is outside
	graph  graph.Graph
}

func (d *mapped) layOut() {
	add := func(name string, lines ...string) {
		width := boxLeast
		for _, line := range lines {
			width = max(width, letter*min(len([]rune(line)), mostLetter)+16)
		}
		d.at[name] = len(d.graph.Nodes)
		d.graph.Nodes = append(d.graph.Nodes, graph.Node{Width: width, Height: boxHeight})
	}
	for _, e := range d.m.Endpoints {
		add(e.Name, e.Name, d.under(e))
	}
	for _, a := range d.arrows {
		if _, known := d.at[""]; a.From == "" && !known {
			add("", "outside")
		}
	}
	for _, a := range d.arrows {
		d.graph.Edges = append(d.graph.Edges, graph.Edge{From: d.at[a.From], To: d.at[a.To]})
	}
	for n := range d.graph.Nodes { // a box with many arrows is higher, so that their ends are apart
		d.graph.Nodes[n].Height = max(boxHeight, portSpace*d.degree(n))
	}
	d.graph.Layout()
}

// under returns the text below the name of an endpoint: its description, and the number of faults.
func (d *mapped) under(e operate.MapEndpoint) string {
	switch wrong := words.AllFaultsOf(d.m, e.Name); {
	case len(wrong) == 1 && len(words.FaultsOf(d.m, e.Name, "")) == 1:
		return "no process, " + under(e)
	case len(wrong) > 0:
		return words.Of(int64(len(wrong)), "fault") + ", " + under(e)
	}
	return under(e)
}

// under describes an endpoint.
func under(e operate.MapEndpoint) string {
	switch {
	case e.Relay:
		return "relay"
	case len(e.Sagas) > 0:
		return strings.Join(e.Sagas, ", ")
	case len(e.Kinds) == 1:
		return "1 kind"
	}
	return fmt.Sprintf("%d kinds", len(e.Kinds))
}

func (d *mapped) box(b *strings.Builder, n int) {
	node := d.graph.Nodes[n]
	draw := func(class, name, below string) {
		middle := node.Y + node.Height/2
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="4"/><text class="name" x="%d" `+
			`y="%d">%s</text> <text class="below" x="%[6]d" y="%[9]d">%[10]s</text>`, class, node.X, node.Y, node.Width,
			node.Height, node.X+node.Width/2, middle-3, short(name), middle+13, short(below))
	}
	if n >= len(d.m.Endpoints) {
		b.WriteString(`<g class="node"><title>outside: no endpoint has sent these messages</title>`)
		draw("outside", "outside", "")
		b.WriteString(`</g>`)
		return
	}
	e := d.m.Endpoints[n]
	class, title := "box", e.Name+", "+under(e)
	if wrong := words.AllFaultsOf(d.m, e.Name); len(wrong) > 0 {
		class, title = "box fault", title+". "+strings.Join(wrong, " ")
	}
	fmt.Fprintf(b, `<a class="node" href="%sendpoints/%s"><title>%s</title>`, text(d.root),
		text(url.PathEscape(e.Name)), text(title))
	draw(class, e.Name, d.under(e))
	b.WriteString(`</a>`)
}

// arrow draws the kinds from one endpoint to another, with their name at the middle of its first part.
func (d *mapped) arrow(b *strings.Builder, n int) {
	a, e := d.arrows[n], d.graph.Edges[n]
	from := "outside"
	if a.From != "" {
		from = a.From
	}
	name := from + " sends " + strings.Join(a.Kinds, ", ") + " to " + a.To
	label := text(view.Shortened(a.Kinds[0], mostLetter-6))
	if len(a.Kinds) > 1 {
		label += fmt.Sprintf(" +%d", len(a.Kinds)-1)
	}
	if pace := words.Rate(a.PerMinute); pace != "" {
		name += ", " + pace + " a minute"
		label += `<tspan class="pace" dx="6">` + pace + `/min</tspan>`
	}
	class := "arrow"
	for _, kind := range a.Kinds {
		if wrong := words.FaultsOf(d.m, a.To, kind); len(wrong) > 0 {
			class, name = "arrow fault", name+". "+strings.Join(wrong, " ")
			label += `<tspan class="bad" dx="6">dies</tspan>`
			break
		}
	}
	at, anchor := d.place(e)
	if e.Back { // a line back has its name below it, or the name would overlap that of the line there
		at.Y += aboveLine + belowLine
	}
	fmt.Fprintf(b, `<g class="%[7]s" role="img" aria-label="%[1]s"><title>%[1]s</title><path d="%[2]s" `+
		`marker-end="url(#tip)"/><text class="%[3]s" x="%[4]d" y="%[5]d">%[6]s</text></g>`, text(name),
		pathOf(&d.graph, e), anchor, at.X, at.Y, label, class)
}

// The name of an arrow is above its line, or below it, and apart from the box.
const (
	aboveLine = 4
	belowLine = 13
	apart     = 10
)

// place returns the place of an arrow's name, beside the end with fewer arrows, and its anchor.
func (d *mapped) place(e graph.Edge) (at graph.Point, anchor string) {
	if e.From == e.To {
		n := d.graph.Nodes[e.From]
		return graph.Point{X: n.X + n.Width/2, Y: n.Y - loop}, "middle"
	}
	at = e.Path[0]
	if d.degree(e.To) <= d.degree(e.From) {
		at = e.Path[len(e.Path)-1]
	}
	anchor, at.X = "begin", at.X+apart
	if slices.ContainsFunc(d.graph.Nodes, func(n graph.Node) bool { return n.X == at.X-apart }) { // its left side
		anchor, at.X = "end", at.X-2*apart
	}
	return graph.Point{X: at.X, Y: at.Y - aboveLine}, anchor
}

// degree returns how many arrows begin or end at a node.
func (d *mapped) degree(node int) (n int) {
	for _, e := range d.graph.Edges {
		if e.From != e.To && (e.From == node || e.To == node) {
			n++
		}
	}
	return n
}

// loop is how far an arrow from a node to itself rises above it.
const loop = 18

// pathOf returns the line of an edge.
func pathOf(g *graph.Graph, e graph.Edge) string {
	if e.From == e.To {
		n := g.Nodes[e.From]
		x, y := n.X+n.Width/2, n.Y
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x-20, y, x-20, y-loop, x+20, y-loop, x+20, y)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", e.Path[0].X, e.Path[0].Y)
	for at := 1; at < len(e.Path); at++ {
		p, q := e.Path[at-1], e.Path[at]
		half := (p.X + q.X) / 2
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", half, p.Y, half, q.Y, q.X, q.Y)
	}
	return b.String()
}
