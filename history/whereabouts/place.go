package whereabouts

import (
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/saga"
)

// State is the place of a message, or its end.
type State string

// The states. A message that was sent to several endpoints has one in each.
const (
	Waiting   State = "waiting"   // it is due, and waits behind others or for a worker
	Delayed   State = "delayed"   // it is due later
	Retrying  State = "retrying"  // an attempt failed, and a retry is due later
	InHand    State = "in hand"   // a worker has it
	Parked    State = "parked"    // it waits behind others of its key, in an ordered endpoint
	Dead      State = "dead"      // it is a dead letter, or the failure of a run
	Discarded State = "discarded" // it was consumed without effect
	Handled   State = "handled"
	Relayed   State = "relayed"   // a relay gave it to a foreign system
	Ingested  State = "ingested"  // it came from a foreign system, and nothing was recorded since
	Cancelled State = "cancelled" // a timeout that its saga has cancelled
	Gone      State = "gone"      // it was here, and no page records its end
	Unknown   State = "unknown"   // nothing is recorded about it
)

// Open reports whether a message in this state may still be handled.
func (s State) Open() bool {
	return s == Waiting || s == Delayed || s == Retrying || s == InHand || s == Parked
}

// Pause is the pause of an endpoint.
type Pause struct {
	Since  time.Time // zero if it is not paused
	By     string    // who paused it, as in operate.EndpointSettings
	Reason string
}

// Place is the place of a message, or its end, in one endpoint. Times are by the database's clock.
type Place struct {
	State    State
	Endpoint string
	Relay    bool          // the endpoint is a relay
	At       time.Time     // the due time, or the time of its end
	In       time.Duration // until it is due
	Until    time.Time     // if in hand, or parked behind a message in hand: the end of the lease; zero in a batch
	Attempt  int           // the next attempt, or the last of a message that has ended
	Before   int64         // number of messages before it, up to MostBefore
	Key      string        // of the lane that it is parked behind
	Process  string        // that has it or its lane in hand, or had it
	Lost     bool          // that process has died
	Letter   int64         // the number of the dead letter, or 0
	Error    string        // of the last attempt
	Reason   string        // why it is dead, discarded or asked to stop
	Did      string        // its effect on an instance
	Unread   string        // if Unknown: an endpoint whose queue was not read to its end, see Reader.Near
	Asked    saga.ID       // if Unknown: the message

	Pause Pause
	Idle  bool // no process runs the endpoint
}

// MostBefore is the largest count of the messages before a message: counting stops there.
const MostBefore = 100_000

// Says describes the place in a sentence or two.
func (p *Place) Says() string {
	switch p.State {
	case Waiting:
		return "It waits in the queue of " + p.consumer() + p.behind() + p.interrupted() + "." + p.hindrance()
	case Delayed:
		return fmt.Sprintf("It is due in %s, at %s, in the queue of %s.", period(p.In), moment(p.At), p.consumer()) +
			p.hindrance()
	case Retrying:
		return fmt.Sprintf("Attempt %d in %s failed%s. Attempt %d follows in %s, at %s.", p.Attempt-1, p.Endpoint,
			because(p.Error), p.Attempt, period(p.In), moment(p.At)) + p.hindrance()
	case InHand:
		return p.inHand()
	case Parked:
		return p.parked()
	case Dead:
		return p.dead()
	case Discarded:
		return fmt.Sprintf("%s discarded it at %s%s.", p.Endpoint, moment(p.At), because(p.Reason))
	case Cancelled:
		return fmt.Sprintf("Its saga has cancelled it in %s at %s.", p.Endpoint, moment(p.At))
	}
	return p.over()
}

// over describes a final place.
func (p *Place) over() string {
	switch p.State {
	case Handled:
		return fmt.Sprintf("%s handled it at %s%s%s.", p.Endpoint, moment(p.At), p.attempt(), p.Did)
	case Relayed:
		return fmt.Sprintf("The relay %s gave it to the other side at %s.", p.Endpoint, moment(p.At))
	case Ingested:
		return fmt.Sprintf("It came in from an external system through %s at %s. It is in no queue, and the history "+
			"has no later record of it.", p.Endpoint, moment(p.At))
	case Gone:
		return p.gone()
	}
	if p.Unread != "" {
		return fmt.Sprintf("It was not found. The queue of %s is long and was not read to its end: edda history find "+
			"%s reads all of it.", p.Unread, p.Asked)
	}
	return "It is in no queue, and the history has no record of it. It was never here, or it was handled longer " +
		"ago than history keeps, or in an endpoint or a conversation without history."
}

func (p *Place) consumer() string {
	if p.Relay {
		return "the relay " + p.Endpoint
	}
	return p.Endpoint
}

func (p *Place) behind() string {
	switch {
	case p.Before == 0:
		return ", and is the next"
	case p.Before == 1:
		return " behind 1 message"
	case p.Before >= MostBefore:
		return fmt.Sprintf(" behind %d messages or more", p.Before)
	}
	return fmt.Sprintf(" behind %d messages", p.Before)
}

// interrupted describes the preceding attempt.
func (p *Place) interrupted() string {
	if p.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(", for attempt %d. Attempt %d failed%s", p.Attempt, p.Attempt-1, because(p.Error))
}

// hindrance describes why the endpoint takes no messages.
func (p *Place) hindrance() string {
	switch {
	case !p.Pause.Since.IsZero():
		return fmt.Sprintf(" The endpoint is paused since %s%s%s.", moment(p.Pause.Since), p.Pause.Who(),
			because(p.Pause.Reason))
	case p.Idle && p.Relay:
		return " No process runs the relay."
	case p.Idle:
		return " No process runs the endpoint."
	}
	return ""
}

// Who returns the actor for the end of a sentence: " by ann", or "" if it is unknown.
func (p Pause) Who() string {
	switch p.By {
	case "":
		return ""
	case "policy":
		return " by its policy"
	}
	return " by " + p.By
}

func (p *Place) inHand() string {
	text := "A worker of " + p.Endpoint + " has it in hand"
	if p.Process != "" {
		text = p.Process + " has it in hand for " + p.Endpoint
	}
	if p.Attempt > 1 {
		text += fmt.Sprintf(", for attempt %d", p.Attempt)
	}
	if !p.Until.IsZero() {
		text += "; its lease ends in " + p.end()
	}
	if text += "."; p.Lost {
		text += " That process has ended: the message is due again when the lease ends."
	}
	if p.Reason != "" {
		text += " Its cancellation was requested" + because(p.Reason) + "."
	}
	return text
}

// end describes the end of the lease of a message in hand.
func (p *Place) end() string {
	return fmt.Sprintf("%s, at %s, unless it is extended", period(p.In), moment(p.Until))
}

func (p *Place) parked() string {
	text := fmt.Sprintf("It is parked in %s: ", p.Endpoint)
	switch p.Before {
	case 0:
		text += "it is the next of its key " + p.Key
	case 1:
		text += "1 message of its key " + p.Key + " is before it"
	default:
		text += fmt.Sprintf("%d messages of its key %s are before it", p.Before, p.Key)
	}
	switch {
	case p.Process != "" && p.In > 0:
		text += ", and " + p.Process + " has one in hand; its lease ends in " + p.end() + "."
	case p.Process != "":
		text += ", and the lease of " + p.Process + ", which had one in hand, ended at " + moment(p.Until) + "."
	case !p.Until.IsZero():
		text += ", and an earlier message is retried in " + period(p.In) + ", at " + moment(p.Until) + "."
	default:
		text += "."
	}
	if p.Lost {
		text += " That process has ended: a different process takes over its messages when the lease has ended."
	}
	return text + p.hindrance()
}

func (p *Place) dead() string {
	if p.Letter > 0 {
		return fmt.Sprintf("It is dead letter %d of %s since %s, after %s%s.", p.Letter, p.Endpoint, moment(p.At),
			attempts(p.Attempt), because(p.Error))
	}
	return fmt.Sprintf("It failed for good in %s at %s, after %s, and its run failed%s.", p.Endpoint,
		moment(p.At), attempts(p.Attempt), because(p.Error))
}

// gone describes the last recorded attempt. Reason describes the end, and is "" if that is unknown.
func (p *Place) gone() string {
	if p.Attempt == 0 {
		return p.Reason
	}
	text := fmt.Sprintf("Attempt %d in %s failed at %s%s.", p.Attempt, p.Endpoint, moment(p.At), because(p.Error))
	if p.Reason != "" {
		return text + " " + p.Reason
	}
	return text + " It is in no queue any more, and the history has no later record of it: its endpoint, or " +
		"its conversation, keeps no history of handled messages, or it is longer ago than history keeps."
}

func (p *Place) attempt() string {
	if p.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(" at attempt %d", p.Attempt)
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// mostOfText is the largest number of characters of a text in a sentence.
const mostOfText = 200

// because returns a text after a colon, or "" if there is no text.
func because(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimRight(line, ". \t\r")
	if line == "" {
		return ""
	}
	runes := []rune(line)
	if len(runes) > mostOfText {
		runes, more = runes[:mostOfText-1], true
	}
	if more {
		return ": " + string(runes) + "…"
	}
	return ": " + string(runes)
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }

// period formats a duration for people.
func period(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		text := d.Round(time.Minute).String()
		return strings.TrimSuffix(text, "0s")
	}
	return fmt.Sprintf("%d days", int(d.Round(time.Hour)/(24*time.Hour)))
}

// began returns the time in an id of version 7.
func began(id saga.ID) time.Time {
	var n int64
	for _, b := range id[:6] {
		n = n<<8 | int64(b)
	}
	return time.UnixMilli(n).UTC()
}
