// Package graph places the nodes of a directed graph in layers, from left to right, for a drawing.
//
// # Promise
//
// The same graph gets the same places, whatever machine draws it. A node stands to the right of those that lead to it,
// except where a cycle makes that impossible. No two nodes overlap, and an edge that passes a layer has a place of its
// own in it. The time grows with the number of edges times that of nodes, which are endpoints: tens of them.
//
// # How
//
// In the steps of Sugiyama: edges that close a cycle are turned round; a node's layer is the longest way to it; an edge
// over several layers gets a bend in each; the order within a layer follows the mean of the neighbours, from left to
// right and back, and the order with the fewest crossings stays.
package graph
