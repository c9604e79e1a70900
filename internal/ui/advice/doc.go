// Package advice says which sagas are contended and what would help, judged by the counters of their endpoints.
//
// # Promise
//
// Functions are pure. Each sentence names the number that it was made from and the threshold that the number has
// passed. A saga with fewer than EnoughMessages is not judged. docs/guide/hot-sagas.md explains each symptom.
//
// Reading order: judge.go, rules.go with the texts, view.go.
package advice
