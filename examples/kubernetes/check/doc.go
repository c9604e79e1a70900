// Package check compares the manifests and the container files of examples/kubernetes with the types of Kubernetes, the
// shop of the tutorial and the command edda. It has tests only.
package check
