// Package check holds the manifests and the container files of examples/kubernetes to what Kubernetes, the shop of the
// tutorial and the command edda know. It has tests only.
package check
