package history

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/edda-go/edda/saga"
)

// The format of a page, version 1: the byte of the version, then records. A record begins with its tag. Numbers are
// varints, times are microseconds after the page's own, and a name is written once and then named by its number.
const (
	format1     = 1
	tagMessage  = 1
	tagInstance = 2
)

// Fate is what became of a message in the transaction that a page tells of.
type Fate uint8

// The fates.
const (
	Handled   Fate = iota + 1
	Retried        // it failed, and is tried again
	Dead           // it failed, and is a dead letter
	Discarded      // it was consumed without effect
)

// Sent is a message that a step sent.
type Sent struct {
	ID     saga.ID
	Kind   string
	To     string // "" is by kind
	Intent saga.Intent
	Due    time.Time // zero is at once
	Body   []byte
}

// page is the bytes of one transaction in the making.
type page struct {
	buf   []byte
	names map[string]uint64
	at    int64 // microseconds, of the page
	count int
}

func (p *page) reset(at time.Time) {
	p.buf = append(p.buf[:0], format1)
	if p.names == nil {
		p.names = map[string]uint64{}
	}
	clear(p.names)
	p.at, p.count = at.UnixMicro(), 0
}

func (p *page) id(id saga.ID)  { p.buf = append(p.buf, id[:]...) }
func (p *page) num(n uint64)   { p.buf = binary.AppendUvarint(p.buf, n) }
func (p *page) signed(n int64) { p.buf = binary.AppendVarint(p.buf, n) }

func (p *page) time(t time.Time) {
	if t.IsZero() {
		p.signed(0)
		return
	}
	p.signed(p.at - t.UnixMicro() + 1)
}

func (p *page) text(s string) {
	p.num(uint64(len(s)))
	p.buf = append(p.buf, s...)
}

func (p *page) bytes(b []byte) {
	p.num(uint64(len(b)))
	p.buf = append(p.buf, b...)
}

func (p *page) name(s string) {
	if n, ok := p.names[s]; ok {
		p.num(n)
		return
	}
	p.names[s] = uint64(len(p.names) + 1)
	p.num(0)
	p.text(s)
}

// The flags of a message.
const (
	hasConversation = 1 << iota // it is not the message's own id
	hasRelated                  // it is not the conversation's id
	hasError
	hasBody
	hasInstance
)

// Message is one message of a page.
type Message struct {
	Info     *saga.Info
	Fate     Fate
	Took     time.Duration
	Instance int // its place among the page's instances, -1 for none
	Err      string
	Body     []byte // nil is not kept
	Gone     []saga.Cancelled
}

func (p *page) message(m *Message, out []saga.Outgoing, bodies bool) {
	i := m.Info
	conversation := i.ConversationID
	if conversation.IsZero() {
		conversation = i.ID
	}
	flags := byte(0)
	if conversation != i.ID {
		flags |= hasConversation
	}
	if !i.RelatedTo.IsZero() && i.RelatedTo != conversation {
		flags |= hasRelated
	}
	if m.Err != "" {
		flags |= hasError
	}
	if m.Body != nil {
		flags |= hasBody
	}
	if m.Instance >= 0 {
		flags |= hasInstance
	}
	p.buf = append(p.buf, tagMessage, flags, byte(i.Intent)|byte(m.Fate)<<4)
	p.id(i.ID)
	p.name(i.Kind)
	p.name(i.From)
	if flags&hasConversation != 0 {
		p.id(conversation)
	}
	if flags&hasRelated != 0 {
		p.id(i.RelatedTo)
	}
	p.num(uint64(i.Attempt))
	p.time(i.Sent)
	p.time(i.Due)
	p.num(uint64(m.Took.Microseconds()))
	if flags&hasInstance != 0 {
		p.num(uint64(m.Instance))
	}
	if flags&hasError != 0 {
		p.text(m.Err)
	}
	if flags&hasBody != 0 {
		p.bytes(m.Body)
	}
	p.num(uint64(len(out)))
	for n := range out {
		o := &out[n]
		p.id(o.Info.ID)
		p.name(o.Info.Kind)
		p.name(o.To)
		p.buf = append(p.buf, byte(o.Info.Intent))
		p.time(o.Info.Due)
		if bodies {
			p.bytes(o.Body)
		}
	}
	p.num(uint64(len(m.Gone)))
	for _, g := range m.Gone {
		p.id(g.ID)
	}
	p.count++
}

// Version is one version of an instance.
type Version struct {
	ID        saga.ID
	Saga, Key string
	Version   int64
	Life      byte
	Page      saga.ID // the page of the version before, zero if there is none
	Before    []byte  // the state of the version before, nil if there is none
	State     []byte  // nil is not kept
}

const (
	stateNone = iota
	stateWhole
	stateDelta
)

const (
	leastDelta = 256 // bytes of a state; a smaller one is kept whole
	wholeEvery = 16
)

func (p *page) instance(v *Version) {
	p.buf = append(p.buf, tagInstance, v.Life)
	p.id(v.ID)
	p.name(v.Saga)
	p.text(v.Key)
	p.num(uint64(v.Version))
	p.id(v.Page)
	p.state(v)
}

func (p *page) state(v *Version) {
	if v.State == nil {
		p.buf = append(p.buf, stateNone)
		return
	}
	if v.Before != nil && len(v.State) >= leastDelta && v.Version%wholeEvery != 0 {
		head, tail := common(v.Before, v.State)
		if changed := v.State[head : len(v.State)-tail]; len(changed) < len(v.State)/2 {
			p.buf = append(p.buf, stateDelta)
			p.num(uint64(head))
			p.num(uint64(tail))
			p.bytes(changed)
			return
		}
	}
	p.buf = append(p.buf, stateWhole)
	p.bytes(v.State)
}

// common returns how many bytes two states have in common at their beginnings and at their ends.
func common(a, b []byte) (head, tail int) {
	most := min(len(a), len(b))
	for head < most && a[head] == b[head] {
		head++
	}
	for tail < most-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

var _ = bytes.Equal
