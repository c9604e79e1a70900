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

// ShownInfo is info as events have it.
func ShownInfo(info saga.Info) saga.Info {
	info.Kind = Shown(info.Kind)
	return info
}

// LogArgs are the keys and values that name a message in the log.
func LogArgs(endpoint string, info *saga.Info) []any {
	args := []any{"endpoint", endpoint, "message_id", info.ID.String(), "kind", Shown(info.Kind), "attempt",
		info.Attempt}
	if f := info.Fire; f != nil {
		args = append(args, "manifest", f.Manifest, "run", f.Run.String(), "run_attempt", f.Attempt)
	}
	return args
}
