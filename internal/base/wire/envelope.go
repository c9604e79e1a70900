package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/edda-go/edda/saga"
)

// Envelope returns the fields that leave the database with a message besides its id, kind and body: the user's
// headers, the sender, the conversation and the instance.
func Envelope(info *saga.Info) map[string]string {
	all := make(map[string]string, info.HeaderCount()+4)
	for name, value := range info.Headers() {
		if !strings.HasPrefix(name, ownNames) { // an unknown name of a newer program
			all[name] = value
		}
	}
	id := func(name string, id, derived saga.ID) {
		if !id.IsZero() && id != derived {
			all[name] = id.String()
		}
	}
	if info.Intent != saga.Command {
		all[nameIntent] = info.Intent.String()
	}
	if info.From != "" {
		all[nameFrom] = info.From
	}
	conversation := info.ConversationID
	if conversation.IsZero() {
		conversation = info.ID
	}
	id(nameConversation, conversation, info.ID)
	id(nameCorrelation, info.CorrelationID, conversation)
	id(nameRelated, info.RelatedTo, conversation)
	id(nameInstance, info.Instance, saga.ID{})
	id(nameOrigin, info.Origin, saga.ID{})
	if info.Expire > 0 {
		all[nameExpire] = info.Expire.String()
	}
	return all
}

// Split divides a header from another system into the user's names and the envelope. The names of the envelope are in
// lower case. Both are nil if header has no name of Edda's: then all of it is the user's.
//
// Split drops names of Edda's that must not leave their database, such as those of a run. It also drops names that
// this version does not know, so that no sender can make this process sort a hundred thousand of them; a sender whose
// envelope cannot be understood without them has to set a newer version.
func Split(header map[string]string) (own, envelope map[string]string) {
	for name := range header {
		if isOwn(name) {
			own, envelope = map[string]string{}, map[string]string{}
			break
		}
	}
	if own == nil {
		return nil, nil
	}
	for name, value := range header {
		if !isOwn(name) {
			own[name] = value
		} else if name = strings.ToLower(name); crosses(name) {
			envelope[name] = value
		}
	}
	return own, envelope
}

func isOwn(name string) bool {
	return len(name) >= len(ownNames) && strings.EqualFold(name[:len(ownNames)], ownNames)
}

func crosses(name string) bool {
	switch name {
	case nameVersion, nameIntent, nameFrom, nameCorrelation, nameConversation, nameRelated, nameInstance, nameOrigin,
		nameExpire:
		return true
	}
	return false
}

// OpenEnvelope is the inverse of Envelope: it fills i, whose ID the caller has set, from the envelope that Split
// returned. After an error i is unchanged.
func OpenEnvelope(envelope map[string]string, i *saga.Info) error {
	read := saga.Info{ID: i.ID}
	r := reader{info: &read, version: thisVersion}
	for _, name := range slices.Sorted(maps.Keys(envelope)) {
		r.pair(name, envelope[name])
	}
	if err := r.end(nil); err != nil {
		return err
	}
	if read.From != "" {
		if err := saga.CheckName(read.From); err != nil {
			return fmt.Errorf("%s: %w", nameFrom, err)
		}
	}
	if read.Intent == saga.Timer {
		return fmt.Errorf("%s: a timeout belongs to the database of its instance", nameIntent)
	}
	i.Intent, i.From, i.Instance, i.Origin = read.Intent, read.From, read.Instance, read.Origin
	i.ConversationID, i.CorrelationID, i.RelatedTo = read.ConversationID, read.CorrelationID, read.RelatedTo
	i.Expire = read.Expire
	return nil
}
