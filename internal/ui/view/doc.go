// Package view says what is shown of a thing: its fields with their stable names in JSON, and short texts for people.
// The command prints these views, and pages serve them, so that a page and the command say the same.
//
// # Promise
//
// Functions are pure: they read what they are given, and nothing else. The names of fields in JSON, and their order,
// stay the same from version to version; new ones may be added. The texts of parts and cells are as they came, perhaps
// from a message: put a text through [Escape] before you show it, and a [Block] through [EscapeLines]. [Object.Text]
// and [Object.Line] return escaped texts.
//
// # What there is
//
// A [List] is of several things of one kind: a [Row] for each, with its object and a text for each column. A [View] is
// of anything: one object, and parts from top to bottom. A list is a view too ([List.View]). A view does not say how to
// see more: the command adds its flags, and a page its links.
//
// # Failures
//
// A field that cannot be read, such as the headers of a damaged message, is left out, and the object says why. An
// object fails to become a text only if a value in it is no JSON.
//
// Reading order: object.go, view.go, text.go, body.go and place.go, then one file for each subject.
package view
