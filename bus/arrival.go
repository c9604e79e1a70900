package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// foreignID is the header that keeps an id which is no UUID, letter by letter.
const foreignID = "watermill-uuid"

// arrival is one message on its way into this database.
type arrival struct {
	given *Arrival
	out   saga.Outgoing
	fault error // why it cannot be a message here
	claim outbox.Received
	state ArrivedState
}

// newArrival makes a message of what came, or finds out why it cannot be one. Either has an id.
func newArrival(o ArriveOptions, given *Arrival) *arrival {
	a := &arrival{given: given}
	if given.ID == "" {
		a.claim.ID = newID()
	} else {
		a.claim = outbox.Received{ID: outbox.InboxID(o.From, given.ID), Sum: outbox.ReceivedSum(given.Kind, given.Body)}
	}
	a.out, a.fault = a.compose()
	if o.Endpoint == "" && a.out.Info.Intent == saga.Command {
		a.out.Info.Intent = saga.Event
	}
	if a.fault != nil {
		a.out = saga.Outgoing{Info: saga.Info{ID: a.claim.ID, Kind: given.Kind}}
	}
	return a
}

// compose checks what came as any message is checked, and reads what another Edda says about it.
func (a *arrival) compose() (saga.Outgoing, error) {
	if a.given.Fault != nil {
		return saga.Outgoing{}, a.given.Fault
	}
	raw := RawMessage{Raw: saga.Raw{Name: a.given.Kind, Body: a.given.Body}, ID: a.claim.ID, Header: a.given.Header}
	var envelope map[string]string
	for name, value := range a.given.Header {
		if isEnveloped(name) {
			if envelope == nil {
				envelope, raw.Header = map[string]string{}, without(a.given.Header)
			}
			if name = strings.ToLower(name); crosses(name) {
				envelope[name] = value
			}
		}
	}
	if a.given.ID != "" && a.given.ID != a.claim.ID.String() {
		if envelope == nil {
			raw.Header = without(a.given.Header)
		}
		raw.Header[foreignID] = a.given.ID
	}
	out, err := raw.compose(saga.Command)
	var permanent *saga.PermanentError
	if errors.As(err, &permanent) {
		err = permanent.Err
	}
	if err != nil || envelope == nil {
		return out, err
	}
	if err := openEnvelope(envelope, &out.Info); err != nil {
		return out, fmt.Errorf("read its envelope: %w", err)
	}
	return out, nil
}

func isEnveloped(name string) bool {
	return len(name) >= len(ownHeaders) && strings.EqualFold(name[:len(ownHeaders)], ownHeaders)
}

// without copies the headers that are the user's.
func without(header map[string]string) map[string]string {
	own := make(map[string]string, len(header)+1)
	for name, value := range header {
		if !isEnveloped(name) {
			own[name] = value
		}
	}
	return own
}

// crosses reports whether a border lets a name of the framework through. Runs of manifests stay in the database that
// has them: what says that the message belongs to one is dropped. Names that this version does not know are dropped
// too, so that nobody can make this process sort a hundred thousand of them; a sender whose envelope cannot be
// understood without them says so by its version.
func crosses(name string) bool {
	switch name {
	case headerVersion, headerIntent, headerFrom, headerCorrelation, headerConversation, headerRelated, headerInstance,
		headerOrigin:
		return true
	}
	return false
}

// openEnvelope is the inverse of Envelope. Its names are those that cross.
func openEnvelope(envelope map[string]string, i *saga.Info) error {
	read := saga.Info{ID: i.ID}
	r := headerReader{info: &read, version: envelopeVersion}
	for _, name := range slices.Sorted(maps.Keys(envelope)) {
		r.pair(name, envelope[name])
	}
	if err := r.end(nil); err != nil {
		return err
	}
	if read.From != "" {
		if err := saga.CheckName(read.From); err != nil {
			return fmt.Errorf("%s: %w", headerFrom, err)
		}
	}
	if read.Intent == saga.Timer {
		return fmt.Errorf("%s: a timeout belongs to the database of its instance", headerIntent)
	}
	i.Intent, i.From, i.Instance, i.Origin = read.Intent, read.From, read.Instance, read.Origin
	i.ConversationID, i.CorrelationID, i.RelatedTo = read.ConversationID, read.CorrelationID, read.RelatedTo
	return nil
}

// letterHeader is the header of a message that became none, for a dead letter. Bytes that are not UTF-8 are written as
// \xNN, so that nothing is lost.
func (a *arrival) letterHeader() []byte {
	header := make(map[string]string, len(a.given.Header)+1)
	for name, value := range a.given.Header {
		header[legible(name)] = legible(value)
	}
	if a.given.ID != "" && a.given.ID != a.claim.ID.String() {
		header[foreignID] = legible(a.given.ID)
	}
	text, err := json.Marshal(header) // strings always encode
	if err != nil {
		return []byte("{}")
	}
	return text
}

func legible(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
