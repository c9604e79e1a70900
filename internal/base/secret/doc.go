// Package secret masks what the struct tag edda:"secret" marks, in the JSON of states and messages. Of a type whose
// JSON it cannot know, because the type encodes itself, it masks the whole value. Text that is no JSON is an error: the
// caller keeps nothing of it.
package secret
