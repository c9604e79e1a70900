// Package wire encodes the fields of a message that are not in the columns of its queue: its header, and the envelope
// that leaves the database.
//
// A header is one flat JSON object of strings. Edda's names begin with "edda-", all others are the user's. Values
// that can be derived are left out, so a message that begins a conversation has an empty header.
//
// An envelope is the same as a map, without the run of a manifest: a run ends in the database that started it.
//
// Errors: ErrNewer means that a newer program wrote the header, so the message should wait for a program that can
// read it. Any other error means that the bytes are not a header.
package wire

import "errors"

const (
	nameVersion      = "edda-version" // of this format; absent is 1
	nameIntent       = "edda-intent"
	nameFrom         = "edda-from"
	nameCorrelation  = "edda-correlation"  // absent: the conversation's id
	nameConversation = "edda-conversation" // absent: the message's own id
	nameRelated      = "edda-related"      // absent: the conversation's id, unless the message begins it
	nameInstance     = "edda-instance"
	nameOrigin       = "edda-origin"
	nameExpire       = "edda-expire" // in the syntax of time.Duration, from when the message was sent; absent: never
	nameManifest     = "edda-manifest"
	nameRun          = "edda-run"
	nameRunAttempt   = "edda-run-attempt" // absent: 1
	nameFireDue      = "edda-fire-due"
	nameFireZone     = "edda-fire-zone"

	ownNames    = "edda-" // prefix of Edda's names
	thisVersion = 1
)

// ErrNewer is the error of a header that a newer program wrote.
var ErrNewer = errors.New("the header was written by a newer program")

// ErrNoObject is the error of a header that is not one JSON object.
var ErrNoObject = errors.New("it is not a JSON object")
