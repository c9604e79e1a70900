package wire

import (
	"strconv"

	"github.com/edda-go/edda/saga"
)

const mostShown = 80 // bytes of a kind that is no name

// Shown is a kind as the log and events have it: one that is no name is escaped and cut. Anybody who may write to a
// topic, or has rights on a queue, chooses the kinds there: any bytes of any length.
func Shown(kind string) string {
	if saga.CheckName(kind) == nil {
		return kind
	}
	if len(kind) > mostShown {
		kind = kind[:mostShown] + "..."
	}
	quoted := strconv.Quote(kind)
	return quoted[1 : len(quoted)-1]
}
