package words

// Shape is the appearance of a state: the name of a drawing, and of a colour. The word of the state is always beside
// it.
type Shape struct{ Drawing, Colour string }

// shapes of the states of messages, endpoints, instances and runs.
var shapes = map[string]Shape{
	"waiting": {"circle", "wait"}, "parked": {"circle", "wait"}, "queued": {"circle", "wait"},
	"in hand": {"half", "now"}, "active": {"half", "now"}, "running": {"half", "now"}, "living": {"half", "now"},
	"held by a process": {"half", "now"}, "draining": {"half", "now"}, "open": {"half", "now"},
	"handled": {"check", "good"}, "relayed": {"check", "good"}, "ingested": {"check", "good"},
	"completed": {"check", "good"}, "succeeded": {"check", "good"}, "live": {"check", "good"},
	"done": {"check", "good"}, "well": {"check", "good"},
	"dead": {"cross", "bad"}, "died": {"cross", "bad"}, "failed": {"cross", "bad"}, "timed_out": {"cross", "bad"},
	"held": {"cross", "bad"}, "attempt failed": {"cross", "warn"}, "nobody": {"cross", "warn"},
	"behind": {"circle", "warn"}, "retried": {"cross", "warn"}, "warning": {"circle", "warn"},
	"delayed": {"timer", "wait"}, "retrying": {"timer", "warn"}, "timer": {"timer", "wait"},
	"paused": {"pause", "warn"}, "orphan": {"pause", "warn"}, "unhandled": {"circle", "warn"},
	"lost": {"cross", "warn"}, "skipped": {"slash", "warn"},
	"ok": {"check", "good"}, "warn": {"circle", "warn"}, "bad": {"cross", "bad"},
	"discarded": {"slash", "soft"}, "cancelled": {"slash", "soft"}, "ended": {"slash", "soft"},
}

// ShapeOf returns the shape of a state. An unknown state is a question mark.
func ShapeOf(state string) Shape {
	if s, ok := shapes[state]; ok {
		return s
	}
	return Shape{"question", "soft"}
}
