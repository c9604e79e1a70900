package recoverability

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
)

// Letter is a dead letter: a message that is no longer retried. operate.DeadLetters lists, retries and discards them.
//
//	waiting    the letter is listed, in the order of its number
//	retried    the letter is gone, and in the same transaction the message is back in its queue with its id,
//	           header and body, and with no attempts counted
//	edited     the same with another body or other headers; an Original has the old message
//	discarded  the letter is gone, and a Discarded has the reason; the body is gone
//
// Its header and its body are kept byte for byte. A message that fails permanently again after a retry is a new letter
// with a new number. Texts are stored with their control characters: escape them before you print them.
type Letter struct {
	Number      int64  // its key
	Endpoint    string // where it failed; a retry sends it there
	MessageID   saga.ID
	Kind        string
	Header      []byte
	Body        []byte
	Attempts    int
	Conflicts   int
	Reason      string    // the rule that ended it
	Error       string    // the last error, at most 8 KiB
	Sent        time.Time // zero if unknown, like FirstFailed
	FirstFailed time.Time
	Died        time.Time // by the database's clock
	Group       string    // shared by letters with the same endpoint, kind, reason and shape of the error
}

// Header is a header of a message. Only the bus sets names that begin with "edda-".
type Header struct{ Name, Value string }

// Headers decodes the headers of a letter and sorts them by name. It returns a value that is not a string as JSON. A
// header that is not a JSON object is an error (and often why the message failed); Letter.Header has the bytes.
func (l *Letter) Headers() ([]Header, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(l.Header, &values); err != nil {
		return nil, fmt.Errorf("header of dead letter %d: %w", l.Number, err)
	}
	headers := make([]Header, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text := ""
		if json.Unmarshal(values[name], &text) != nil {
			text = string(values[name])
		}
		headers = append(headers, Header{name, text})
	}
	return headers, nil
}

// Discarded records that a message was consumed without effect, and why.
type Discarded struct {
	Number    int64
	Endpoint  string
	MessageID saga.ID
	Kind      string
	Saga, Key string // "" if the message was not for an instance
	Reason    string
	At        time.Time // by the database's clock
}

// LetterFilter selects dead letters, discarded messages or originals. A zero field is no condition.
type LetterFilter struct {
	Endpoint  string
	Kind      string
	Group     string // name of a LetterGroup
	MessageID saga.ID
	After     int64 // continue after this number; open transactions may still add smaller ones
	Limit     int   // 0 or less is 50; more than 200 is an error

	DiedFrom   time.Time // died at this time or later, by the database's clock
	DiedBefore time.Time // died before this time
}

// LetterGroup is a set of dead letters of one endpoint and one kind with similar errors: they differ only in numbers,
// ids and quoted texts.
type LetterGroup struct {
	Name     string // twelve hexadecimal digits, computed in the same way in every database
	Endpoint string
	Kind     string
	Count    int64 // at most 100,000, or GroupFilter.CountTo
	Capped   bool  // counting stopped at the limit: there may be more
	First    time.Time
	Last     time.Time // when the letters with the lowest and the highest number died
	Example  int64     // the number of the last letter
	Reason   string    // of the last letter, like Error
	Error    string
	Note     GroupNote // read if GroupFilter.Notes is set
}

// GroupNote is a text that an operator has written on a group: the known facts, the ticket. It is the newest entry of
// the audit about the group, so it is kept for 400 days, even while the group has no letters.
type GroupNote struct {
	Text string // "" if the group has no note
	By   string
	At   time.Time
}

// GroupFilter selects groups. A zero field is no condition.
type GroupFilter struct {
	Endpoint string
	Kind     string
	After    string // continue after the group of this name
	Limit    int    // groups to read, including those of other endpoints and kinds; 0 or less is 1,000, the maximum
	CountTo  int    // counting of a group's letters stops there; 0 or less is 100,000, the maximum
	Notes    bool   // also read the note of each group
}

// Edit is a change of a dead letter before it is retried.
type Edit struct {
	Body   []byte            // nil keeps the body; an empty slice that is not nil makes it empty
	JSON   bool              // refuse a Body that is not JSON
	Set    map[string]string // headers to add or to change
	Remove []string          // headers to remove
	ID     saga.ID           // of the message; zero keeps its id
	Reason string            // for the record
}

// Original is a dead letter as it was before an edit.
type Original struct {
	Number    int64 // of the edit
	Letter    int64 // number of the dead letter
	Endpoint  string
	MessageID saga.ID
	SentAs    saga.ID // id of the message that was sent instead
	Kind      string
	Header    []byte
	Body      []byte
	Reason    string
	By        string    // the database role
	At        time.Time // by the database's clock
}
