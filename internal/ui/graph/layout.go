package graph

import (
	"cmp"
	"slices"
)

// Node is a node with its size. Layout sets X and Y, its upper left corner.
type Node struct{ Width, Height, X, Y int }

// Edge connects two nodes. Layout sets Path.
type Edge struct {
	From, To int     // numbers of nodes; an edge from a node to itself has no path
	Path     []Point // from the right side of From to the left side of To, with a point in each layer between
	Back     bool    // it closes a cycle: its path goes from the left side of From to the right side of To
}

// Point is a place in the drawing.
type Point struct{ X, Y int }

// Graph is the input and output of Layout.
type Graph struct {
	Nodes []Node
	Edges []Edge

	Width, Height int // of the drawing; Layout sets them
}

// Space around and between nodes.
const (
	Margin    = 16
	layerGap  = 190 // for the names of edges
	nodeGap   = 28
	bendSpace = 20 // for an edge that passes a layer
	rounds    = 8
)

// spot is a place in a layer, of a node or of an edge that passes.
type spot struct {
	node   int // -1 for a bend
	edge   int
	height int
	left   []int // spots with edges to it
	right  []int // spots that its edges go to
	y      int
}

// layout is a graph that is being drawn.
type layout struct {
	*Graph
	spots  []spot   // spots of nodes first, in their order
	layer  []int    // of each spot
	layers [][]int  // spots, from top to bottom
	bends  [][]int  // of each edge, from left to right
	ends   [][2]int // of each edge: its left and its right node
}

// Layout places the nodes, and draws the paths of the edges.
func (g *Graph) Layout() {
	l := &layout{Graph: g}
	l.turn()
	l.assign()
	l.bend()
	l.order()
	l.place()
	l.lead()
}

// turn finds the edges that close a cycle, by a depth-first walk from each node in the order of their numbers.
func (l *layout) turn() {
	const (
		fresh = iota
		open
		done
	)
	state := make([]int, len(l.Nodes))
	var walk func(n int)
	walk = func(n int) {
		state[n] = open
		for at := range l.Edges {
			e := &l.Edges[at]
			if e.From != n || e.To == n {
				continue
			}
			switch state[e.To] {
			case fresh:
				walk(e.To)
			case open:
				e.Back = true
			}
		}
		state[n] = done
	}
	for n := range l.Nodes {
		if state[n] == fresh {
			walk(n)
		}
	}
	for _, e := range l.Edges {
		ends := [2]int{e.From, e.To}
		if e.Back {
			ends = [2]int{e.To, e.From}
		}
		l.ends = append(l.ends, ends)
	}
}

// assign gives each node its layer: the one after the last layer with an edge to it.
func (l *layout) assign() {
	l.layer = make([]int, len(l.Nodes))
	for moved := true; moved; {
		moved = false
		for _, e := range l.ends {
			if e[0] != e[1] && l.layer[e[1]] <= l.layer[e[0]] {
				l.layer[e[1]], moved = l.layer[e[0]]+1, true
			}
		}
	}
}

// bend makes the spots, with one for each edge in each layer that it passes.
func (l *layout) bend() {
	for n := range l.Nodes {
		l.spots = append(l.spots, spot{node: n, edge: -1, height: l.Nodes[n].Height})
	}
	l.bends = make([][]int, len(l.Edges))
	for at, e := range l.ends {
		if e[0] == e[1] {
			continue
		}
		from := e[0]
		for layer := l.layer[e[0]] + 1; layer < l.layer[e[1]]; layer++ {
			next := len(l.spots)
			l.spots = append(l.spots, spot{node: -1, edge: at, height: bendSpace})
			l.layer = append(l.layer, layer)
			l.join(from, next)
			l.bends[at], from = append(l.bends[at], next), next
		}
		l.join(from, e[1])
	}
	l.layers = make([][]int, slices.Max(append(l.layer, 0))+1)
	for s := range l.spots {
		l.layers[l.layer[s]] = append(l.layers[l.layer[s]], s)
	}
}

func (l *layout) join(from, to int) {
	l.spots[from].right = append(l.spots[from].right, to)
	l.spots[to].left = append(l.spots[to].left, from)
}

// order sorts each layer by the mean of its neighbours' places, from left to right and back, and keeps the order with
// the fewest crossings.
func (l *layout) order() {
	best, fewest := l.copied(), l.crossings()
	for round := range rounds {
		for n := range l.layers {
			at := n
			if round%2 == 1 {
				at = len(l.layers) - 1 - n
			}
			l.sort(l.layers[at], round%2 == 0)
		}
		if n := l.crossings(); n < fewest {
			best, fewest = l.copied(), n
		}
	}
	l.layers = best
}

func (l *layout) copied() [][]int {
	all := make([][]int, len(l.layers))
	for n, layer := range l.layers {
		all[n] = slices.Clone(layer)
	}
	return all
}

// ranks returns the places of spots in their layers.
func (l *layout) ranks() []int {
	ranks := make([]int, len(l.spots))
	for _, layer := range l.layers {
		for at, s := range layer {
			ranks[s] = at
		}
	}
	return ranks
}

func (l *layout) sort(layer []int, byLeft bool) {
	ranks := l.ranks()
	mean := func(s int) float64 {
		of := l.spots[s].right
		if byLeft {
			of = l.spots[s].left
		}
		if len(of) == 0 {
			return float64(ranks[s])
		}
		sum := 0
		for _, o := range of {
			sum += ranks[o]
		}
		return float64(sum) / float64(len(of))
	}
	means := map[int]float64{}
	for _, s := range layer {
		means[s] = mean(s)
	}
	slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(means[a], means[b]) })
}

// crossings counts the pairs of edges that cross between two layers.
func (l *layout) crossings() (n int) {
	ranks := l.ranks()
	for _, layer := range l.layers {
		var pairs [][2]int
		for _, s := range layer {
			for _, to := range l.spots[s].right {
				pairs = append(pairs, [2]int{ranks[s], ranks[to]})
			}
		}
		for a, p := range pairs {
			for _, q := range pairs[a+1:] {
				if (p[0]-q[0])*(p[1]-q[1]) < 0 {
					n++
				}
			}
		}
	}
	return n
}

// place gives spots their places: layers side by side, each in the middle of the drawing's height.
func (l *layout) place() {
	heights := make([]int, len(l.layers))
	for n, layer := range l.layers {
		for _, s := range layer {
			heights[n] += l.spots[s].height + nodeGap
		}
		l.Height = max(l.Height, heights[n]-nodeGap+2*Margin)
	}
	x := Margin
	for n, layer := range l.layers {
		y, width := (l.Height-heights[n]+nodeGap)/2, 0
		for _, s := range layer {
			l.spots[s].y = y
			y += l.spots[s].height + nodeGap
			if node := l.spots[s].node; node >= 0 {
				l.Nodes[node].X, l.Nodes[node].Y = x, l.spots[s].y
				width = max(width, l.Nodes[node].Width)
			}
		}
		for _, s := range layer { // narrower nodes are centred in their layer
			if node := l.spots[s].node; node >= 0 {
				l.Nodes[node].X += (width - l.Nodes[node].Width) / 2
			}
		}
		l.bendAt(layer, x+width/2)
		x += width + layerGap
	}
	l.Width = max(x-layerGap+Margin, 2*Margin)
}

// bendAt gives the bends of a layer their places.
func (l *layout) bendAt(layer []int, x int) {
	for _, s := range layer {
		if e := l.spots[s].edge; e >= 0 {
			l.Edges[e].Path = append(l.Edges[e].Path, Point{x, l.spots[s].y + bendSpace/2})
		}
	}
}

// lead adds the ends of each path. The ends at one side of a node are apart from each other, in the order of the
// nodes that they lead to.
func (l *layout) lead() {
	for at := range l.Edges {
		from, to := l.ends[at][0], l.ends[at][1]
		if from == to {
			continue
		}
		e := &l.Edges[at]
		first := Point{l.Nodes[from].X + l.Nodes[from].Width, l.port(from, at, 0)}
		last := Point{l.Nodes[to].X, l.port(to, at, 1)}
		e.Path = append(append([]Point{first}, e.Path...), last)
		if e.Back {
			slices.Reverse(e.Path)
		}
	}
}

// port returns the height at which an edge meets a node. end is 0 for the left end of the edge, 1 for the right.
func (l *layout) port(node, edge, end int) int {
	of := []int{}
	for at, ends := range l.ends {
		if ends[end] == node && ends[0] != ends[1] {
			of = append(of, at)
		}
	}
	slices.SortStableFunc(of, func(a, b int) int { return cmp.Compare(l.next(a, end), l.next(b, end)) })
	n := &l.Nodes[node]
	return n.Y + n.Height*(slices.Index(of, edge)+1)/(len(of)+1)
}

// next returns the height of the point that an edge leads to from an end.
func (l *layout) next(edge, end int) int {
	bends := l.bends[edge]
	s := l.ends[edge][1-end]
	if len(bends) > 0 && end == 0 {
		s = bends[0]
	} else if len(bends) > 0 {
		s = bends[len(bends)-1]
	}
	return l.spots[s].y + l.spots[s].height/2
}
