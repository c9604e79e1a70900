// Package view defines which fields of a thing are shown: their stable names in JSON, and short texts for people. The
// command prints these views, and pages serve them, so that both show the same.
//
// # Promise
//
// Functions are pure: they read only their arguments. The names of fields in JSON, and their order, stay the same
// from version to version; new ones may be added. The texts of parts and cells are not escaped, and may come from a
// message: put a text through [Escape] before you show it, and a [Block] through [EscapeLines]. [Object.Text] and
// [Object.Line] return escaped texts.
//
// # Types
//
// A [List] shows several things of one kind: a [Row] for each, with its object and a text for each column. A [View]
// shows anything: one object, and parts from top to bottom. A list is a view too ([List.View]). A view does not
// mention how to see more: the command adds its flags, and a page its links.
//
// # Failures
//
// If a field cannot be read, such as the headers of a damaged message, it is left out, and the object has the reason.
// The conversion of an object to text fails only if a value in it is no JSON.
//
// Reading order: object.go, view.go, text.go, body.go and place.go, then one file for each subject.
package view
