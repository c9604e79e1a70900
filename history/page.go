package history

import (
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Page collects the history of one transaction, and queues its rows. It belongs to one goroutine. Begin reuses its
// memory for the next transaction.
type Page struct {
	store   *Store
	newID   func() saga.ID
	origin  origin
	options Options

	id      saga.ID
	now     time.Time
	out     encoder
	count   int
	ids     []saga.ID // the ids that find the page: of messages, and of instances whose rows do not name it
	changes int
	lives   []life
	bodies  int // bytes of bodies in the page
}

// life is an instance that ended in the transaction.
type life struct {
	id        saga.ID
	saga, key string
	page      saga.ID // page of the last version
	outcome   Outcome
}

// origin has the data that all transactions of a page share.
type origin struct{ endpoint, host string }

// Begin prepares the page for a transaction. now is the database's time at its beginning.
func (p *Page) Begin(o Options, now time.Time) {
	p.options, p.now, p.id, p.count, p.changes, p.bodies = o, now, saga.ID{}, 0, 0, 0
	p.ids, p.lives = p.ids[:0], p.lives[:0]
	p.out.reset(now)
	p.out.text(p.origin.host)
}

// On reports whether the page records anything.
func (p *Page) On() bool { return p != nil && p.options.Level > Off }

// Keeps reports whether the page records a successful step of this message.
func (p *Page) Keeps(info *saga.Info) bool { return p != nil && p.options.Keeps(info) }

// keepsStates reports whether the page records states.
func (p *Page) keepsStates() bool { return p.options.Level >= States }

// KeepsState reports whether the page records the state after a change.
func (p *Page) KeepsState(k ChangeKind) bool { return p.keepsStates() && k != Unchanged }

// KeepsBodies reports whether the page records bodies.
func (p *Page) KeepsBodies() bool { return p.options.Level >= Bodies }

// KeepsBody reports whether the page records a body of this many bytes.
func (p *Page) KeepsBody(bytes int) bool {
	return p.KeepsBodies() && bytes <= mostBody && p.bodies+bytes <= mostBodies
}

// ID returns the id of the page; the rows of its instances contain it. Its last bit is set if the page has the state
// of each instance that it changes.
func (p *Page) ID() saga.ID {
	if p.id.IsZero() {
		p.id = p.newID()
		p.id[15] &^= 1
		if p.keepsStates() && !p.sampled() {
			p.id[15] |= 1
		}
	}
	return p.id
}

// sampled reports whether some conversations are left out.
func (p *Page) sampled() bool { return p.options.Sample > 0 && p.options.Sample < 1 }

func conversationOf(i *saga.Info) saga.ID {
	if i.ConversationID.IsZero() {
		return i.ID
	}
	return i.ConversationID
}

// Change is the effect of a transaction on an instance.
type Change struct {
	ID        saga.ID
	Saga, Key string
	Version   int64 // after the transaction; 0 if the row is deleted and was not loaded
	Kind      ChangeKind
	Previous  saga.ID // the page that the row named when it was loaded, or zero
	Before    []byte  // the state as it was loaded, nil for a start
	State     []byte  // after the transaction
}

// ChangeKind is the kind of a Change.
type ChangeKind uint8

// The kinds of changes.
const (
	Attempted ChangeKind = iota // unchanged, because its attempts failed
	Began
	Changed   // it has a new version
	Unchanged // its messages changed nothing
	Ended     // it has completed
	BeganAndEnded

	// Changes by an operator. Such a version has no messages, and By is the operator.
	Repaired // its state was replaced
	Retimed  // its pending timeouts were changed
	Stopped  // it was ended without its handlers
)

var changeKinds = [...]string{"attempted", "began", "changed", "unchanged", "ended", "began and ended", "repaired",
	"retimed", "stopped"}

func (k ChangeKind) String() string {
	if int(k) < len(changeKinds) {
		return changeKinds[k]
	}
	return "unknown"
}

// over reports whether the instance has ended.
func (k ChangeKind) over() bool { return k == Ended || k == BeganAndEnded || k == Stopped }

// byOperator reports whether an operator, and no message, made the change.
func (k ChangeKind) byOperator() bool { return k >= Repaired }

// Outcome records how a life ended.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "completed"
	stopped   Outcome = "stopped" // by an operator
)

// AddChange adds a change, and returns its number, which the messages of the page refer to.
func (p *Page) AddChange(c *Change) int {
	p.changes++
	if c.Kind == Unchanged {
		p.ids = append(p.ids, c.ID)
	}
	if c.Kind.over() {
		p.AddEnd(c.ID, c.Saga, c.Key, p.ID())
	}
	if c.Kind == Stopped {
		p.lives[len(p.lives)-1].outcome = stopped
	}
	e := &p.out
	e.byte(tagChange)
	e.byte(byte(c.Kind))
	e.id(c.ID)
	e.name(c.Saga)
	e.text(c.Key)
	e.number(uint64(c.Version))
	e.flag(!c.Previous.IsZero())
	if !c.Previous.IsZero() {
		e.id(c.Previous)
	}
	p.addState(c)
	return p.changes
}

func (p *Page) addState(c *Change) {
	if !p.KeepsState(c.Kind) || c.State == nil {
		p.out.byte(stateNone)
		return
	}
	if p.delta(c) {
		return
	}
	p.out.byte(stateWhole)
	p.out.bytes(c.State)
}

// A state is written as its difference from its predecessor if that is much shorter. A reader then needs at most
// wholeEvery pages to build a state.
const (
	leastDelta = 256              // bytes; a smaller state is written whole
	wholeEvery = 16               // versions
	knownFor   = 10 * time.Minute // an older page may have been emptied before this one is read
)

// ComparesState reports whether the state of c may be written as a difference, so that the caller should set Before.
// The preceding page must have the preceding state, and be younger than knownFor.
func (p *Page) ComparesState(c *Change) bool {
	age := p.now.UnixMilli() - millis(c.Previous)
	return len(c.State) >= leastDelta && c.Previous[15]&1 == 1 && age < knownFor.Milliseconds() &&
		c.Version%wholeEvery != 0 && !p.sampled()
}

// delta writes a state as the bytes between its common beginning and its common end with the preceding state. If
// conversations are sampled, no page may have the preceding version.
func (p *Page) delta(c *Change) bool {
	if c.Before == nil || !p.ComparesState(c) {
		return false
	}
	head, tail := common(c.Before, c.State)
	between := c.State[head : len(c.State)-tail]
	if len(between) > len(c.State)/2 {
		return false
	}
	p.out.byte(stateDelta)
	p.out.number(uint64(head))
	p.out.number(uint64(tail))
	p.out.number(digest(c.Before))
	p.out.bytes(between)
	return true
}

// common returns how many bytes two states have in common at the beginning, and after that at the end.
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

// AddEnd adds an instance that has ended. page is the page with its last recorded version.
func (p *Page) AddEnd(id saga.ID, name, key string, page saga.ID) {
	p.lives = append(p.lives, life{id, name, key, page, Completed})
}

// Attempt is one message of the transaction, and its fate.
type Attempt struct {
	Info      *saga.Info
	Fate      Fate
	Took      time.Duration // of its handler
	Change    int           // result of AddChange; 0 if the message concerns no instance
	Instance  saga.ID       // the instance of a failed attempt, which has no Change
	Err       string        // of a failure
	Reason    string        // why it is dead or discarded
	Sent      []saga.Outgoing
	Cancelled []saga.Cancelled
	Body      []byte // nil if it is not kept
}

// The limits of the contents of a page.
const (
	mostBody   = 16 << 10 // bytes of one body; of a longer one only the length is kept
	mostBodies = 4 << 20  // bytes of all bodies of a page
	mostError  = 2 << 10  // of an error or a reason; a page has each text once
	mostName   = 255
)

// Add adds an attempt. The caller leaves out successful attempts of conversations that are not sampled, see Keeps.
func (p *Page) Add(a *Attempt) {
	i := a.Info
	p.count++
	p.ids = append(p.ids, i.ID)
	e := &p.out
	flags := a.flags()
	has := func(flag uint64) bool { return flags&flag != 0 }
	e.byte(tagMessage)
	e.number(flags)
	e.byte(byte(i.Intent)<<4 | byte(a.Fate))
	e.id(i.ID)
	e.name(short(i.Kind))
	e.name(short(i.From))
	if has(hasConversation) {
		e.id(i.ConversationID)
	}
	if has(hasRelated) {
		e.id(i.RelatedTo)
	}
	e.number(uint64(i.Attempt))
	e.time(i.Sent)
	e.time(i.Due)
	e.number(uint64(a.Took.Microseconds()))
	if has(hasChange) {
		e.number(uint64(a.Change))
	}
	if has(hasInstance) {
		p.ids = append(p.ids, a.Instance)
		e.id(a.Instance)
	}
	if has(hasError) {
		e.name(a.Err[:min(len(a.Err), mostError)])
	}
	if has(hasReason) {
		e.name(a.Reason[:min(len(a.Reason), mostError)])
	}
	if has(hasRun) {
		e.name(short(i.Firing.Manifest))
		e.id(i.Firing.Run)
	}
	p.addBody(a.Body)
	p.addSent(a)
}

// short returns the beginning of a name, because a foreign program may have chosen it.
func short(name string) string { return name[:min(len(name), mostName)] }

// The flags of a message: the optional parts that it has.
const (
	hasConversation = 1 << iota // it differs from the message's own id
	hasRelated                  // it differs from the conversation's id
	hasChange
	hasInstance
	hasError
	hasReason
	hasRun
)

func (a *Attempt) flags() (flags uint64) {
	i := a.Info
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	conversation := conversationOf(i)
	set(hasConversation, conversation != i.ID)
	set(hasRelated, conversation != i.ID && i.RelatedTo != conversation)
	set(hasChange, a.Change > 0)
	set(hasInstance, a.Change == 0 && !a.Instance.IsZero())
	set(hasError, a.Err != "")
	set(hasReason, a.Reason != "")
	set(hasRun, i.Firing != nil)
	return flags
}

// addBody writes the length of a body, and its bytes if the page keeps them.
func (p *Page) addBody(body []byte) {
	p.out.number(uint64(len(body)))
	keep := body != nil && p.KeepsBody(len(body))
	p.out.flag(keep)
	if keep {
		p.bodies += len(body)
		p.out.raw(body)
	}
}

func (p *Page) addSent(a *Attempt) {
	e := &p.out
	e.number(uint64(len(a.Sent)))
	for n := range a.Sent {
		o := &a.Sent[n]
		e.byte(byte(o.Info.Intent))
		e.id(o.Info.ID)
		e.name(short(o.Info.Kind))
		e.name(short(o.To))
		e.time(o.Info.Due)
		p.addBody(o.Body)
	}
	e.number(uint64(len(a.Cancelled)))
	for _, c := range a.Cancelled {
		e.id(c.ID)
	}
}

// Queue queues the rows of the page, if it has any. The statements never wait for another transaction.
func (p *Page) Queue(b *pgx.Batch) {
	if !p.On() {
		return
	}
	if p.count+p.changes > 0 {
		first, last := pg.UUIDs(), pg.UUIDs()
		from, until := p.rangesOfIDs()
		for n := range from {
			first.UUID(from[n])
			last.UUID(until[n])
		}
		b.Queue(p.store.sql.Get("add_page"), [16]byte(p.ID()), p.origin.endpoint, p.count, p.out.buf, first, last)
	}
	if len(p.lives) > 0 {
		p.queueLives(b)
	}
}

func (p *Page) queueLives(b *pgx.Batch) {
	iid, name, key, outcome, page := pg.UUIDs(), pg.Texts(), pg.Texts(), pg.Texts(), pg.UUIDs()
	for _, l := range p.lives {
		iid.UUID(l.id)
		name.Text(l.saga)
		key.Text(l.key)
		outcome.Text(string(l.outcome))
		page.UUID(l.page)
	}
	b.Queue(p.store.sql.Get("add_lives"), iid, name, key, outcome, page)
}

// rangeMillis is the longest time, in milliseconds, between the ids of one range. A reader that searches for an id
// must check all ranges that end within this time after it.
const rangeMillis = 100

// rangesOfIDs splits the ids into few ranges. Ids of version 7 begin with their time, so the messages of a
// transaction are mostly one range. A random id is a range of its own.
func (p *Page) rangesOfIDs() (first, last []saga.ID) {
	slices.SortFunc(p.ids, saga.ID.Compare)
	from := 0
	for n := range p.ids {
		if n+1 < len(p.ids) && millis(p.ids[n+1])-millis(p.ids[from]) <= rangeMillis {
			continue
		}
		first, last = append(first, p.ids[from]), append(last, p.ids[n])
		from = n + 1
	}
	return first, last
}

// millis decodes the first six bytes, which in an id of version 7 are the milliseconds since 1970.
func millis(id saga.ID) int64 {
	var n int64
	for _, b := range id[:6] {
		n = n<<8 | int64(b)
	}
	return n
}
