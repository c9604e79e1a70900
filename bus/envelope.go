package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/saga"
)

// The header of a message is one flat JSON object of strings: the framework's names begin with "edda-",
// all others are the user's. What can be derived is left out: a message that begins a conversation
// carries nothing at all.
const (
	headerVersion      = "edda-version" // of this format; absent is 1
	headerIntent       = "edda-intent"
	headerFrom         = "edda-from"
	headerCorrelation  = "edda-correlation"  // absent: the conversation's id
	headerConversation = "edda-conversation" // absent: the message's own id
	headerRelated      = "edda-related"      // absent: the conversation's id, unless the message begins it
	headerInstance     = "edda-instance"
	headerOrigin       = "edda-origin"
	headerManifest     = "edda-manifest"
	headerRun          = "edda-run"
	headerRunAttempt   = "edda-run-attempt" // absent: 1
	headerFireDue      = "edda-fire-due"
	headerFireZone     = "edda-fire-zone"

	envelopeVersion = 1
)

// errNewerEnvelope: a newer program wrote the header. The message waits for a worker that knows it.
var errNewerEnvelope = errors.New("the header was written by a newer program")

var errNoObject = errors.New("it is not a JSON object")

// appendHeader encodes what i knows beyond the columns of the queue.
func appendHeader(buf []byte, i *saga.Info) []byte {
	buf = append(buf, '{')
	begin := len(buf)
	pair := func(name, value string) {
		if len(buf) > begin {
			buf = append(buf, ',')
		}
		buf = append(buf, '"')
		buf = append(buf, name...)
		buf = append(buf, `":"`...)
		buf = append(buf, value...)
		buf = append(buf, '"')
	}
	id := func(name string, id saga.ID) {
		pair(name, "")
		buf = append(appendUUID(buf[:len(buf)-1], id), '"')
	}
	if i.Intent != saga.Command {
		pair(headerIntent, i.Intent.String())
	}
	switch {
	case i.From == "":
	case saga.CheckName(i.From) == nil:
		pair(headerFrom, i.From)
	default: // of a header that somebody else wrote
		pair(headerFrom, "")
		buf = appendJSONString(buf[:len(buf)-2], i.From)
	}
	conversation := i.ID
	if !i.ConversationID.IsZero() && i.ConversationID != i.ID {
		conversation = i.ConversationID
		id(headerConversation, conversation)
	}
	if !i.CorrelationID.IsZero() && i.CorrelationID != conversation {
		id(headerCorrelation, i.CorrelationID)
	}
	if !i.RelatedTo.IsZero() && i.RelatedTo != conversation {
		id(headerRelated, i.RelatedTo)
	}
	if !i.Instance.IsZero() {
		id(headerInstance, i.Instance)
	}
	if !i.Origin.IsZero() {
		id(headerOrigin, i.Origin)
	}
	if i.Fire != nil {
		pair(headerManifest, "")
		buf = appendJSONString(buf[:len(buf)-2], i.Fire.Manifest)
		id(headerRun, i.Fire.Run)
		if i.Fire.Attempt > 1 {
			pair(headerRunAttempt, strconv.Itoa(i.Fire.Attempt))
		}
		pair(headerFireDue, i.Fire.Due.Format(time.RFC3339Nano))
		pair(headerFireZone, i.Fire.Due.Location().String())
	}
	if i.HeaderCount() > 0 {
		buf = appendUserHeaders(buf, i, len(buf) > begin)
	}
	return append(buf, '}')
}

func appendUserHeaders(buf []byte, i *saga.Info, comma bool) []byte {
	for name, value := range i.Headers() {
		if comma {
			buf = append(buf, ',')
		}
		comma = true
		buf = appendJSONString(buf, name)
		buf = append(buf, ':')
		buf = appendJSONString(buf, value)
	}
	return buf
}

func appendJSONString(buf []byte, s string) []byte {
	text, err := json.Marshal(s) // a string always encodes
	if err != nil {
		return append(buf, `""`...)
	}
	return append(buf, text...)
}

const hexDigits = "0123456789abcdef"

func appendUUID(buf []byte, id saga.ID) []byte {
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			buf = append(buf, '-')
		}
		buf = append(buf, hexDigits[b>>4], hexDigits[b&15])
	}
	return buf
}

// readHeader fills i, whose ID, Kind and times the caller has set, from a stored header. An error means
// that the header is no header; what could be read stays in i.
func readHeader(header []byte, i *saga.Info) error {
	r := headerReader{info: i, version: envelopeVersion}
	err := eachPair(header, r.pair)
	return r.end(err)
}

// headerReader fills an Info from the names and values of a header.
type headerReader struct {
	info    *saga.Info
	version int
	related bool
	zone    string
	wrong   error // the first; what comes behind it may say that a newer program wrote the header
}

func (r *headerReader) pair(name, value string) {
	var err error
	i := r.info
	switch name {
	case headerVersion:
		r.version, err = readVersion(value)
	case headerIntent:
		i.Intent, err = saga.ParseIntent(value)
	case headerFrom:
		i.From = value
	case headerCorrelation:
		i.CorrelationID, err = saga.ParseID(value)
	case headerConversation:
		i.ConversationID, err = saga.ParseID(value)
	case headerRelated:
		r.related = true
		i.RelatedTo, err = saga.ParseID(value)
	case headerInstance:
		i.Instance, err = saga.ParseID(value)
	case headerOrigin:
		i.Origin, err = saga.ParseID(value)
	case headerFireZone:
		r.zone = value
	case headerManifest, headerRun, headerRunAttempt, headerFireDue:
		err = readFire(i, name, value)
	default:
		i.AddHeader(name, value)
	}
	if err != nil && r.wrong == nil {
		r.wrong = fmt.Errorf("%s: %w", name, err)
	}
}

// end derives what was left out. err is why the header could not be read to its end.
func (r *headerReader) end(err error) error {
	if r.version > envelopeVersion {
		return errNewerEnvelope
	}
	deriveIDs(r.info, r.related)
	inZone(r.info.Fire, r.zone)
	if err != nil {
		return err
	}
	return r.wrong
}

func readVersion(value string) (int, error) {
	version, err := strconv.Atoi(value)
	if err != nil || version < 1 {
		return envelopeVersion, fmt.Errorf("%d bytes, want a number from 1", len(value))
	}
	return version, nil
}

// deriveIDs is the inverse of what appendHeader leaves out.
func deriveIDs(i *saga.Info, related bool) {
	if i.ConversationID.IsZero() {
		i.ConversationID = i.ID
	}
	if i.CorrelationID.IsZero() {
		i.CorrelationID = i.ConversationID
	}
	if !related && i.ConversationID != i.ID {
		i.RelatedTo = i.ConversationID
	}
}

func readFire(i *saga.Info, name, value string) (err error) {
	if i.Fire == nil {
		i.Fire = &saga.Fire{Attempt: 1}
	}
	switch name {
	case headerManifest:
		i.Fire.Manifest = value
	case headerRun:
		i.Fire.Run, err = saga.ParseID(value)
	case headerRunAttempt:
		i.Fire.Attempt, err = strconv.Atoi(value)
	case headerFireDue:
		if i.Fire.Due, err = time.Parse(time.RFC3339Nano, value); err != nil {
			err = fmt.Errorf("%d bytes, want a time of the form %s", len(value), time.RFC3339Nano)
		}
	}
	return err
}

// inZone gives the due time of a firing its zone by name. One that this machine does not know, or knows as another
// ("Local"), leaves the time at its offset.
func inZone(fire *saga.Fire, zone string) {
	if fire == nil || fire.Due.IsZero() || zone == "" || zone == "Local" {
		return
	}
	if place, err := time.LoadLocation(zone); err == nil {
		fire.Due = fire.Due.In(place)
	}
}

// eachPair calls do for every name and value of a flat JSON object of strings, in their order. The common header
// has no escapes and is read without allocating more than its values; any other goes through encoding/json.
func eachPair(header []byte, do func(name, value string)) error {
	if !utf8.Valid(header) {
		return fmt.Errorf("%d bytes: %w", len(header), saga.ErrInvalidText)
	}
	text := string(header)
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' || strings.IndexByte(text, '\\') >= 0 {
		return eachPairSlow(header, do)
	}
	rest := text[1 : len(text)-1]
	for more := rest != ""; more; {
		name, after, ok := cutString(rest)
		if !ok || after == "" || after[0] != ':' {
			return eachPairSlow(header, do)
		}
		value, after, ok := cutString(after[1:])
		if !ok || after != "" && after[0] != ',' {
			return eachPairSlow(header, do)
		}
		do(name, value)
		rest, more = strings.CutPrefix(after, ",")
	}
	return nil
}

// cutString cuts a JSON string without escapes from the front of s.
func cutString(s string) (value, after string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	return strings.Cut(s[1:], `"`)
}

// eachPairSlow starts over: do is only ever given whole values, and being given one twice does no harm.
func eachPairSlow(header []byte, do func(name, value string)) error {
	d := json.NewDecoder(bytes.NewReader(header))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errNoObject
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("%w: %w", errNoObject, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("%w: %w", errNoObject, err)
		}
		text := string(value) // another program wrote a number or an object; it stays readable
		if value[0] == '"' {
			if err := json.Unmarshal(value, &text); err != nil {
				return fmt.Errorf("%w: %w", errNoObject, err)
			}
		}
		do(name.(string), text)
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return fmt.Errorf("%w: %w", errNoObject, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows it", errNoObject)
	}
	return nil
}
