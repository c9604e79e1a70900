package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/wire"
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
	own, envelope := wire.Split(a.given.Header)
	if own != nil {
		raw.Header = own
	}
	if a.given.ID != "" && a.given.ID != a.claim.ID.String() {
		if own == nil {
			raw.Header = make(map[string]string, len(a.given.Header)+1)
			maps.Copy(raw.Header, a.given.Header)
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
	if err := wire.OpenEnvelope(envelope, &out.Info); err != nil {
		return out, fmt.Errorf("read its envelope: %w", err)
	}
	return out, nil
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
