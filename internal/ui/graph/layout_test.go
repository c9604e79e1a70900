package graph

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func drawn(nodes int, edges ...[2]int) *Graph {
	g := &Graph{}
	for range nodes {
		g.Nodes = append(g.Nodes, Node{Width: 100, Height: 40})
	}
	for _, e := range edges {
		g.Edges = append(g.Edges, Edge{From: e[0], To: e[1]})
	}
	g.Layout()
	return g
}

// columns returns the numbers of nodes by their X, and within a column by their Y.
func (g *Graph) columns() (all [][]int) {
	byX := map[int][]int{}
	for n, node := range g.Nodes {
		byX[node.X] = append(byX[node.X], n)
	}
	xs := []int{}
	for x := range byX {
		xs = append(xs, x)
	}
	slices.Sort(xs)
	for _, x := range xs {
		slices.SortFunc(byX[x], func(a, b int) int { return g.Nodes[a].Y - g.Nodes[b].Y })
		all = append(all, byX[x])
	}
	return all
}

func TestNodesStandBehindThoseThatLeadToThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes int
		edges [][2]int
		want  string
	}{
		"nothing":             {0, nil, "[]"},
		"one":                 {1, nil, "[[0]]"},
		"to itself":           {1, [][2]int{{0, 0}}, "[[0]]"},
		"a chain":             {3, [][2]int{{2, 1}, {1, 0}}, "[[2] [1] [0]]"},
		"a long way, a short": {3, [][2]int{{0, 2}, {0, 1}, {1, 2}}, "[[0] [1] [2]]"},
		"there and back":      {2, [][2]int{{0, 1}, {1, 0}}, "[[0] [1]]"},
		"crossed":             {4, [][2]int{{0, 3}, {1, 2}}, "[[0 1] [3 2]]"},
	} {
		if got := fmt.Sprint(drawn(c.nodes, c.edges...).columns()); got != c.want {
			t.Errorf("%s: the columns are %s, want %s", name, got, c.want)
		}
	}
}

// An edge over several layers has a point in each, and an edge that closes a cycle leads back.
func TestPathsOfEdges(t *testing.T) {
	t.Parallel()
	g := drawn(3, [2]int{0, 1}, [2]int{1, 2}, [2]int{0, 2}, [2]int{2, 0})
	if n := len(g.Edges[2].Path); n != 3 {
		t.Errorf("the edge over a layer has %d points: %v", n, g.Edges[2].Path)
	}
	back := g.Edges[3]
	if !back.Back || back.Path[0].X != g.Nodes[2].X || back.Path[2].X != g.Nodes[0].X+g.Nodes[0].Width {
		t.Errorf("the edge back is %+v", back)
	}
	if g.Edges[0].Path[0] == g.Edges[2].Path[0] {
		t.Error("two edges leave a node at one point")
	}
	if first := g.Edges[0].Path[0]; first.X != g.Nodes[0].X+g.Nodes[0].Width {
		t.Errorf("the first edge begins at %v", first)
	}
}

// Whatever the graph is, nodes do not overlap, everything is inside the drawing, and a second layout is the same.
func TestAnyGraphIsDrawn(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // for a test
	for range 300 {
		nodes := 1 + random.IntN(12)
		edges := make([][2]int, random.IntN(20))
		for n := range edges {
			edges[n] = [2]int{random.IntN(nodes), random.IntN(nodes)}
		}
		g := drawn(nodes, edges...)
		if again := drawn(nodes, edges...); !reflect.DeepEqual(g, again) {
			t.Fatalf("%v is drawn in two ways", edges)
		}
		for a, n := range g.Nodes {
			if n.X < 0 || n.Y < 0 || n.X+n.Width > g.Width || n.Y+n.Height > g.Height {
				t.Fatalf("%v: node %d is at %+v, outside of %d × %d", edges, a, n, g.Width, g.Height)
			}
			for b, o := range g.Nodes[:a] {
				if n.X < o.X+o.Width && o.X < n.X+n.Width && n.Y < o.Y+o.Height && o.Y < n.Y+n.Height {
					t.Fatalf("%v: nodes %d and %d overlap", edges, a, b)
				}
			}
		}
		for _, e := range g.Edges {
			if e.From != e.To && len(e.Path) < 2 || e.From == e.To && len(e.Path) > 0 {
				t.Fatalf("%v: an edge has the path %v", edges, e.Path)
			}
		}
	}
}

func TestFewEdgesCross(t *testing.T) {
	t.Parallel()
	g := &Graph{}
	for range 6 {
		g.Nodes = append(g.Nodes, Node{Width: 10, Height: 10})
	}
	g.Edges = []Edge{{From: 0, To: 5}, {From: 1, To: 4}, {From: 2, To: 3}}
	l := &layout{Graph: g}
	l.turn()
	l.assign()
	l.bend()
	if n := l.crossings(); n != 3 {
		t.Errorf("in the order of their numbers %d pairs cross, want 3", n)
	}
	l.order()
	if n := l.crossings(); n != 0 {
		t.Errorf("%d pairs cross", n)
	}
}
