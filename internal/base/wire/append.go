package wire

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/edda-go/edda/saga"
)

// AppendHeader appends to buf the fields of i that are not in the columns of a queue.
func AppendHeader(buf []byte, i *saga.Info) []byte {
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
		pair(nameIntent, i.Intent.String())
	}
	switch {
	case i.From == "":
	case saga.CheckName(i.From) == nil:
		pair(nameFrom, i.From)
	default: // a different program wrote the name
		pair(nameFrom, "")
		buf = appendJSONString(buf[:len(buf)-2], i.From)
	}
	conversation := i.ID
	if !i.ConversationID.IsZero() && i.ConversationID != i.ID {
		conversation = i.ConversationID
		id(nameConversation, conversation)
	}
	if !i.CorrelationID.IsZero() && i.CorrelationID != conversation {
		id(nameCorrelation, i.CorrelationID)
	}
	if !i.RelatedTo.IsZero() && i.RelatedTo != conversation {
		id(nameRelated, i.RelatedTo)
	}
	if !i.Instance.IsZero() {
		id(nameInstance, i.Instance)
	}
	if !i.Origin.IsZero() {
		id(nameOrigin, i.Origin)
	}
	if i.Expire > 0 {
		pair(nameExpire, i.Expire.String())
	}
	if i.Firing != nil {
		pair(nameManifest, "")
		buf = appendJSONString(buf[:len(buf)-2], i.Firing.Manifest)
		id(nameRun, i.Firing.Run)
		if i.Firing.Attempt > 1 {
			pair(nameRunAttempt, strconv.Itoa(i.Firing.Attempt))
		}
		pair(nameFireDue, i.Firing.Due.Format(time.RFC3339Nano))
		pair(nameFireZone, i.Firing.Due.Location().String())
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
