// Package secret masks the fields with the struct tag edda:"secret" in the JSON of states and messages. If a type
// encodes itself, so that its JSON is unknown, the whole value is masked. Text that is no JSON is an error: the
// caller keeps nothing of it.
package secret
