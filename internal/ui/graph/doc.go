// Package graph places the nodes of a directed graph in layers, from left to right, for a drawing.
//
// # Promise
//
// The same graph gets the same places on every machine. A node is to the right of the nodes with edges to it, except
// where a cycle makes that impossible. Nodes do not overlap, and an edge that passes a layer has a place of its own
// in it. The time grows with the number of edges times that of nodes, which are endpoints: tens of them.
//
// # How
//
// It follows the steps of Sugiyama: edges that close a cycle are reversed; a node's layer is the longest path to it;
// an edge over several layers gets a bend in each; the order within a layer follows the mean of the neighbours, from
// left to right and back, and the order with the fewest crossings is kept.
package graph
