package view

import (
	"fmt"
	"strconv"

	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
)

// Kept returns the copies of messages that a relay has sent: a page of outbox.Store.ListKept.
func Kept(page outbox.KeptPage) List {
	next := ""
	if page.More {
		next = PlaceText(page.Next.Relayed.UTC(), page.Next.ID)
	}
	return listOf("messages", "RELAYED|ID|KIND|SENT|BYTES", page.Found, func(k outbox.Kept) Row {
		return Row{JSON: keptOf(k), Cells: []string{Moment(k.Relayed), k.ID.String(), k.Kind, Moment(k.Sent),
			strconv.Itoa(k.Size)}}
	}).before(next)
}

func keptOf(k outbox.Kept) Object {
	return Object{"endpoint", k.Endpoint, "id", k.ID, "kind", k.Kind, "sent", timeOrNull(k.Sent), "relayed",
		k.Relayed.UTC(), "size", k.Size, "header", string(k.Header)}
}

// Copies returns all kept copies of one message: one for each time that it was relayed.
func Copies(found []outbox.Kept, bodies bool) View {
	v := View{JSON: Object{"messages", objects(found, func(k outbox.Kept) Object {
		if bodies {
			return append(keptOf(k), bodyOf(k.Body)...)
		}
		return keptOf(k)
	})}}
	for _, k := range found {
		v.Parts = append(v.Parts, fields("relay", k.Endpoint, "message", k.ID.String(), "kind", k.Kind, "sent",
			Moment(k.Sent), "relayed", Moment(k.Relayed), "header", string(k.Header), "body",
			fmt.Sprintf("%d bytes", k.Size)))
		if bodies {
			v.Parts = append(v.Parts, Block(Body(k.Body)))
		}
	}
	return v
}

// Ring shows how long a ring keeps its rows, and for the history how large it may be.
func Ring(r operate.Ring) View {
	limit := ""
	switch {
	case r.Name == string(ring.History) && r.Most > 0:
		limit = fmt.Sprintf(", as long as it has no more than %s; it has %s", Bytes(r.Most), Bytes(r.Bytes))
	case r.Name == string(ring.History):
		limit = fmt.Sprintf(", however large it is; it has %s", Bytes(r.Bytes))
	}
	return View{
		JSON: Object{"ring", r.Name, "keep_seconds", r.Keep.Seconds(), "slot", r.Slot, "since", r.Since.UTC(), "bytes",
			r.Bytes, "most_bytes", r.Most},
		Parts: []Part{linef("The %s is kept for %v%s; it was last rotated at %s.", r.Name, r.Keep, limit,
			Moment(r.Since))},
	}
}
