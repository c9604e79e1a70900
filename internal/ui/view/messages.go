package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

// Peeked shows messages at the head of a queue. limit is the operate.PeekOptions.Limit of the read.
func Peeked(messages []operate.QueuedMessage, limit int, bodies bool) List {
	l := listOf("messages", "DUE|ID|KIND|ATTEMPT|CONFLICTS|FIRST FAILED|LAST ERROR|BYTES|HEADERS", messages,
		func(m operate.QueuedMessage) Row {
			r := Row{JSON: messageOf(m, bodies), Cells: messageCells(m)}
			if bodies {
				r.Body = shownBody(m)
			}
			return r
		})
	next := ""
	if n := len(messages); n > 0 && n >= min(cmp.Or(limit, 50), 200) {
		last := messages[n-1].Info
		next = PlaceText(last.Due, last.ID)
	}
	l.bodies = bodies && len(messages) > 0
	return l.before(next)
}

func messageCells(m operate.QueuedMessage) []string {
	return []string{Moment(m.Info.Due), m.Info.ID.String(), m.Info.Kind, strconv.Itoa(m.Info.Attempt),
		strconv.Itoa(m.Conflicts), Moment(m.FirstFailed), Shortened(m.LastError, 80), strconv.Itoa(m.Size),
		Shortened(headersOf(m, true), 80)}
}

func messageOf(m operate.QueuedMessage, bodies bool) Object {
	i, headers := m.Info, map[string]string{}
	for name, value := range i.Headers() {
		headers[name] = value
	}
	o := Object{"id", i.ID, "kind", i.Kind, "due", i.Due, "ready", m.Ready, "sent", timeOrNull(i.Sent), "expires",
		timeOrNull(expires(i)), "attempt", i.Attempt, "conflicts", m.Conflicts, "first_failed",
		timeOrNull(m.FirstFailed), "last_error", m.LastError, "intent", i.Intent.String(), "from", i.From,
		"conversation", i.ConversationID, "instance", idOrNull(i.Instance), "headers", headers}
	if m.Faulty != nil {
		o = append(o, "header_error", m.Faulty.Error())
	}
	// truncated: the body is longer than the part that is shown
	o = append(o, "size", m.Size, "truncated", bodies && len(m.Body) < m.Size)
	if bodies {
		o = append(o, bodyOf(m.Body)...)
	}
	return o
}

// expires returns when a message is discarded if no handler has begun with it, or zero: never.
func expires(i saga.Info) time.Time {
	if i.Expire == 0 {
		return time.Time{}
	}
	return i.Sent.Add(i.Expire)
}

// headersOf returns the headers for people.
func headersOf(m operate.QueuedMessage, from bool) string {
	var all []string
	if m.Faulty != nil {
		all = append(all, "unreadable: "+m.Faulty.Error())
	}
	if from && m.Info.From != "" {
		all = append(all, "from="+m.Info.From)
	}
	for name, value := range m.Info.Headers() {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func shownBody(m operate.QueuedMessage) string {
	if len(m.Body) < m.Size {
		return string(m.Body) + fmt.Sprintf("… (%d of %d bytes)", len(m.Body), m.Size)
	}
	return string(m.Body)
}

// Found shows one message in each queue that has a copy of it.
func Found(found []operate.FoundMessage, bodies bool) View {
	all := objects(found, func(m operate.FoundMessage) Object { return foundOf(m, bodies) })
	v := View{JSON: Object{"messages", all}}
	for _, m := range found {
		v.Parts = append(v.Parts, foundFields(m))
		if bodies {
			v.Parts = append(v.Parts, Block(shownBody(m.QueuedMessage)))
		}
	}
	return v
}

func foundOf(m operate.FoundMessage, bodies bool) Object {
	// lane: the message is parked behind an earlier message of this key
	return append(append(Object{"endpoint", m.Endpoint}, messageOf(m.QueuedMessage, bodies)...), "lane", m.Lane,
		"claims", m.Claims, "holder", idOrNull(m.Holder), "was_due", timeOrNull(m.WasDue), "cancelled", m.Cancelled,
		"crashes", m.Crashes, "crashes_alone", m.CrashesAlone)
}

func foundFields(m operate.FoundMessage) Fields {
	i := m.Info
	return fields("endpoint", m.Endpoint, "message", i.ID.String(), "kind", i.Kind, "intent", i.Intent.String(), "from",
		i.From, "conversation", i.ConversationID.String(), "instance", idText(i.Instance), "sent", Moment(i.Sent),
		"due", Moment(i.Due), "expires", Moment(expires(i)), "ready", strconv.FormatBool(m.Ready), "next attempt",
		strconv.Itoa(i.Attempt), "conflicts", strconv.Itoa(m.Conflicts), "first failed", Moment(m.FirstFailed),
		"last error", m.LastError, "parked behind key", m.Lane, "claims", numberText(m.Claims), "held by session",
		idText(m.Holder), "due before the claim", Moment(m.WasDue), "cancelled", m.Cancelled, "crashes",
		numberText(m.Crashes), "crashes alone", numberText(m.CrashesAlone), "headers",
		headersOf(m.QueuedMessage, false), "body", fmt.Sprintf("%d bytes", m.Size))
}
