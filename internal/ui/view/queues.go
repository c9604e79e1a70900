package view

import (
	"strings"

	"github.com/edda-go/edda/operate"
)

// Queues shows the queues of all endpoints, with the number of waiting messages.
func Queues(all []operate.QueueInfo) List {
	return listOf("queues", "ENDPOINT|READY|DELAYED|CLAIMED|PARKED|LAG|BY|KINDS", all, func(i operate.QueueInfo) Row {
		return Row{JSON: queueOf(i), Cells: []string{i.Endpoint, count(i.Ready), count(i.Delayed), count(i.Claimed),
			count(i.Parked), span(i.Lag), consumer(i.Relay), strings.Join(i.Kinds, " ")}}
	})
}

func queueOf(i operate.QueueInfo) Object {
	return Object{"endpoint", i.Endpoint, "ready", i.Ready, "delayed", i.Delayed, "claimed", i.Claimed, "parked",
		i.Parked, "capped", i.Capped, "oldest_due", timeOrNull(i.OldestDue), "lag_seconds", i.Lag.Seconds(), "relay",
		i.Relay, "kinds", texts(i.Kinds)}
}

// count marks an estimate.
func count(n int64) string {
	if n >= operate.CountLimit {
		return "~" + wide(n)
	}
	return wide(n)
}
