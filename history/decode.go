package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/saga"
)

// Entry is one attempt of a message.
type Entry struct {
	At       time.Time // when its transaction began, by the database's clock
	Page     saga.ID
	Endpoint string
	Host     string // name of the process
	Fate     Fate
	Info     Message
	Took     time.Duration // of the handler
	Error    string        // of a failure
	Reason   string        // why it is dead or discarded
	Instance saga.ID       // zero if there was no instance
	Saga     string        // of the instance, if the attempt changed it or left it unchanged; so is Key
	Key      string
	Version  int64 // of the instance after its transaction; 0 if the attempt failed

	Sent      []Message
	Cancelled []saga.ID // timeouts
}

// Message is the recorded data of a message.
type Message struct {
	ID           saga.ID
	Conversation saga.ID
	RelatedTo    saga.ID // the message whose handler sent it; zero from outside
	Kind         string
	Intent       saga.Intent
	From         string // the endpoint that sent it
	To           string // of a sent message; "" is by kind
	Attempt      int
	Sent, Due    time.Time // a zero Due is at once
	Manifest     string    // the manifest that emitted it
	Run          saga.ID
	Size         int    // of its body, in bytes; 0 if nothing of it may be kept
	Body         []byte // nil if it is not kept
}

// Version is the effect of a transaction on an instance.
type Version struct {
	At        time.Time
	Page      saga.ID
	ID        saga.ID
	Saga, Key string
	Version   int64
	Change    ChangeKind
	Previous  saga.ID // the page of the preceding version, or zero if it is unknown
	State     []byte  // nil if it is not kept, or can no longer be built
	Before    []byte  // the state of the preceding recorded version; nil for the same reasons as State
	Entries   []Entry // its messages
	By        string  // of a change by an operator: the actor, or the role

	state   stateForm
	changed []byte
	head    int
	tail    int
	base    uint64
}

type stateForm byte

// ErrNewer means that a newer program wrote a page.
var ErrNewer = errors.New("a newer program wrote this page of the history")

var errPage = errors.New("the bytes are not a page of the history")

// content is the part of a page that a reader wants.
type content struct {
	at       time.Time
	host     string
	versions []Version
	entries  []Entry
	of       []int // for each entry, the number of its version in the page, or 0
	changes  []changed
}

// changed is a version of a page, by its number from 1.
type changed struct {
	id      saga.ID
	saga    string
	key     []byte
	version int64
	place   int // index in versions, -1 if it is not wanted
}

// wanted selects the part of a page to decode: a large page has a thousand messages, and a reader wants a few.
type wanted struct {
	all      bool
	messages map[saga.ID]bool
	instance saga.ID
}

// decodePage decodes a page. It is safe for any bytes.
func decodePage(b []byte, want wanted) (c content, err error) {
	d := decoder{rest: b, want: want}
	if len(b) == 0 {
		return c, errPage
	}
	if f := d.byte(); f > format {
		return c, fmt.Errorf("%w: format %d", ErrNewer, f)
	} else if f < format {
		return c, errPage
	}
	d.now = d.signed()
	c.at = time.UnixMicro(d.now).UTC()
	c.host = d.text()
	for len(d.rest) > 0 && !d.failed {
		switch d.byte() {
		case tagChange:
			c.addChange(d.version())
		case tagMessage:
			d.message(&c)
		default:
			d.failed = true
		}
	}
	if d.failed {
		return content{}, errPage
	}
	for n := range c.versions {
		if c.versions[n].Change.byOperator() {
			c.versions[n].By = c.host
		}
	}
	for n := range c.changes {
		c.changes[n].key = nil // it would keep the bytes of the page in memory
	}
	return c, nil
}

func (c *content) addChange(v Version, key []byte, keep bool) {
	at := changed{id: v.ID, saga: v.Saga, key: key, version: v.Version, place: -1}
	if keep {
		at.place = len(c.versions)
		c.versions = append(c.versions, v)
	}
	c.changes = append(c.changes, at)
}

// decoder decodes a page. After its end it returns zeros and sets failed.
type decoder struct {
	rest   []byte
	names  []string
	now    int64
	failed bool
	want   wanted
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) flag() bool { return d.byte() != 0 }

func (d *decoder) id() (id saga.ID) {
	copy(id[:], d.take(uint64(len(id))))
	return id
}

func (d *decoder) number() uint64 {
	n, length := binary.Uvarint(d.rest)
	if length <= 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[length:]
	return n
}

func (d *decoder) signed() int64 {
	n, length := binary.Varint(d.rest)
	if length <= 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[length:]
	return n
}

func (d *decoder) text() string  { return string(d.take(d.number())) }
func (d *decoder) bytes() []byte { return d.take(d.number()) }

func (d *decoder) name() string {
	n := d.number()
	if n == 0 {
		name := d.text()
		d.names = append(d.names, name)
		return name
	}
	if n > uint64(len(d.names)) {
		d.failed = true
		return ""
	}
	return d.names[n-1]
}

func (d *decoder) time() time.Time {
	n := d.number()
	if n == 0 {
		return time.Time{}
	}
	n--
	return time.UnixMicro(d.now - (int64(n>>1) ^ -int64(n&1))).UTC()
}

func (d *decoder) version() (v Version, key []byte, keep bool) {
	v.Change = ChangeKind(d.byte())
	v.ID, v.Saga = d.id(), d.name()
	keep = d.want.all || v.ID == d.want.instance
	if key = d.bytes(); keep {
		v.Key = string(key)
	}
	v.Version = int64(d.number())
	if d.flag() {
		v.Previous = d.id()
	}
	switch v.state = stateForm(d.byte()); v.state {
	case stateNone:
	case stateWhole:
		v.State = d.bytes()
	case stateDelta:
		v.head, v.tail, v.base, v.changed = int(d.number()), int(d.number()), d.number(), d.bytes()
	default:
		d.failed = true
	}
	return v, key, keep
}

// build makes the state of v from the preceding one, if v has only the difference. It reports whether v has a state.
func (v *Version) build(before []byte) bool {
	if v.state != stateDelta || v.State != nil {
		return v.State != nil
	}
	if before == nil || digest(before) != v.base || v.head < 0 || v.tail < 0 || v.head > len(before) ||
		v.tail > len(before)-v.head {
		return false
	}
	v.State = append(append(append([]byte{}, before[:v.head]...), v.changed...), before[len(before)-v.tail:]...)
	return true
}

// message decodes a message, and adds it to c if it is wanted.
func (d *decoder) message(c *content) {
	flags := d.number()
	has := func(flag uint64) bool { return flags&flag != 0 }
	both := d.byte()
	e := Entry{At: c.at, Host: c.host, Fate: Fate(both & 0x0f)}
	i := &e.Info
	i.Intent = saga.Intent(both >> 4)
	i.ID, i.Kind, i.From = d.id(), d.name(), d.name()
	i.Conversation = i.ID
	if has(hasConversation) {
		i.Conversation = d.id()
		i.RelatedTo = i.Conversation
		if has(hasRelated) {
			i.RelatedTo = d.id()
		}
	}
	i.Attempt, i.Sent, i.Due = int(d.number()), d.time(), d.time()
	e.Took = time.Duration(d.number()) * time.Microsecond
	number := uint64(0)
	if has(hasChange) {
		if number = d.number(); number < 1 || number > uint64(len(c.changes)) {
			d.failed = true
			return
		}
		of := &c.changes[number-1]
		e.Instance, e.Version, e.Saga = of.id, of.version, of.saga
	}
	if has(hasInstance) {
		e.Instance = d.id()
	}
	if !d.want.all && !d.want.messages[i.ID] && (d.want.instance.IsZero() || e.Instance != d.want.instance) {
		d.skipBehind(has)
		return
	}
	if number > 0 {
		e.Key = string(c.changes[number-1].key)
	}
	d.behind(&e, has)
	c.entries, c.of = append(c.entries, e), append(c.of, int(number))
}

// behind decodes the fields of a message after its instance.
func (d *decoder) behind(e *Entry, has func(uint64) bool) {
	i := &e.Info
	if has(hasError) {
		e.Error = d.name()
	}
	if has(hasReason) {
		e.Reason = d.name()
	}
	if has(hasRun) {
		i.Manifest, i.Run = d.name(), d.id()
	}
	d.body(i)
	for n := d.number(); n > 0 && !d.failed; n-- {
		out := Message{Intent: saga.Intent(d.byte()), ID: d.id(), Kind: d.name(), To: d.name(), Due: d.time()}
		d.body(&out)
		out.Conversation, out.RelatedTo = i.Conversation, i.ID
		e.Sent = append(e.Sent, out)
	}
	for n := d.number(); n > 0 && !d.failed; n-- {
		e.Cancelled = append(e.Cancelled, d.id())
	}
}

// skipBehind skips the fields of a message after its instance. It decodes names, because later records refer to them.
func (d *decoder) skipBehind(has func(uint64) bool) {
	var unwanted Message
	if has(hasError) {
		d.name()
	}
	if has(hasReason) {
		d.name()
	}
	if has(hasRun) {
		d.name()
		d.id()
	}
	d.body(&unwanted)
	for n := d.number(); n > 0 && !d.failed; n-- {
		d.byte()
		d.id()
		d.name()
		d.name()
		d.number()
		d.body(&unwanted)
	}
	for n := d.number(); n > 0 && !d.failed; n-- {
		d.id()
	}
}

func (d *decoder) body(of *Message) {
	n := d.number()
	of.Size = int(n)
	if d.flag() {
		of.Body = d.take(n)
		if of.Body == nil && n == 0 {
			of.Body = []byte{}
		}
	}
}
