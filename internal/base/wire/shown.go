package wire

import (
	"strconv"
	"strings"

	"github.com/edda-go/edda/saga"
)

const mostShown = 80 // bytes of a kind that is not a valid name

// Shown returns a kind in the form for the log and events: a kind that is not a valid name is escaped and cut. Any
// sender that may write to a topic, or has rights on a queue, chooses the kinds there: any bytes of any length.
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

// ShownInfo returns info in the form for events.
func ShownInfo(info saga.Info) saga.Info {
	info.Kind = Shown(info.Kind)
	return info
}

// LogArgs returns the keys and values that name a message in the log.
func LogArgs(endpoint string, info *saga.Info) []any {
	args := []any{"endpoint", endpoint, "message_id", info.ID.String(), "kind", Shown(info.Kind), "attempt",
		info.Attempt}
	if f := info.Firing; f != nil {
		args = append(args, "manifest", f.Manifest, "run", f.Run.String(), "run_attempt", f.Attempt)
	}
	return AppendTrace(args, info)
}

// AppendTrace appends the keys and values for the context of a message: its conversation, and the trace of its header
// traceparent if that is valid.
func AppendTrace(args []any, info *saga.Info) []any {
	if !info.ConversationID.IsZero() {
		args = append(args, "conversation", info.ConversationID.String())
	}
	if id := traceID(info.Header("traceparent")); id != "" {
		args = append(args, "trace_id", id)
	}
	return args
}

// Parts of a traceparent, see https://www.w3.org/TR/trace-context/: 00-<trace-id>-<parent-id>-<flags>.
const (
	traceBegin, traceEnd   = 3, 35
	parentBegin, parentEnd = 36, 52
	traceparentSize        = 55
)

// traceID returns the trace id of a traceparent, or "" if that is not valid. A later version may have more parts.
func traceID(parent string) string {
	if len(parent) < traceparentSize || parent[2] != '-' || parent[traceEnd] != '-' || parent[parentEnd] != '-' {
		return ""
	}
	version, id, span := parent[:2], parent[traceBegin:traceEnd], parent[parentBegin:parentEnd]
	switch {
	case !isHex(version) || !isHex(id) || !isHex(span) || !isHex(parent[parentEnd+1:traceparentSize]):
		return ""
	case version == "ff" || strings.Trim(id, "0") == "" || strings.Trim(span, "0") == "":
		return ""
	case len(parent) > traceparentSize && (version == "00" || parent[traceparentSize] != '-'):
		return ""
	}
	return id
}

// isHex reports whether s consists of lower-case hexadecimal digits.
func isHex(s string) bool { return strings.Trim(s, hexDigits) == "" }
