package bus

import (
	"strings"

	"github.com/edda-go/edda/saga"
)

// ownHeaders begins the names of the framework's headers.
const ownHeaders = "edda-"

// Envelope is what has to cross a border with a message besides its id, kind and body, so that the other side knows
// what this one does: the user's headers, and who sent it, for which conversation and which instance. Bus.Arrive reads
// it.
//
// The run of a manifest stays behind: it is ended here, and the other database knows nothing of it.
func Envelope(info *saga.Info) map[string]string {
	all := make(map[string]string, info.HeaderCount()+4)
	for name, value := range info.Headers() {
		if !strings.HasPrefix(name, ownHeaders) { // a newer program's, which this one does not understand
			all[name] = value
		}
	}
	id := func(name string, id saga.ID, derived saga.ID) {
		if !id.IsZero() && id != derived {
			all[name] = id.String()
		}
	}
	if info.Intent != saga.Command {
		all[headerIntent] = info.Intent.String()
	}
	if info.From != "" {
		all[headerFrom] = info.From
	}
	conversation := info.ConversationID
	if conversation.IsZero() {
		conversation = info.ID
	}
	id(headerConversation, conversation, info.ID)
	id(headerCorrelation, info.CorrelationID, conversation)
	id(headerRelated, info.RelatedTo, conversation)
	id(headerInstance, info.Instance, saga.ID{})
	id(headerOrigin, info.Origin, saga.ID{})
	return all
}
