// Package view says what is shown of a thing: its fields with their stable names in JSON, and short texts for people.
// The command prints these views, and pages serve them, so that a page and the command say the same.
//
// # Promise
//
// Functions are pure: they read what they are given, and nothing else. The names of fields in JSON, and their order,
// stay the same from version to version; new ones may be added. Texts in a view are as they came: whoever shows one
// puts it through [Escape], because it may be from a message. [Object.Text] and [Object.Line] have escaped theirs.
//
// # What there is
//
// A [List] is of several things of one kind: a [Row] for each, with its object and a text for each column. A [View] is
// of anything: one object, and parts from top to bottom. A list is a view too ([List.View]). Views name no command and
// no flag: the command adds how to go on, and so does a page.
//
// # Failures
//
// A field that cannot be read, such as the headers of a damaged message, is left out, and the object says why. An
// object fails to become a text only if a value in it is no JSON.
//
// Reading order: object.go, view.go, text.go, body.go and place.go, then one file for each subject.
package view
