package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Ordering is whether a leased endpoint handles the messages of one key one after another.
type Ordering uint8

// What becomes of the followers of a message that failed is the difference between the last two. In both, at most one
// message of a key is in hand in the whole cluster, and they come in the order in which they are due.
//
// An endpoint may become Unordered with a deploy. While old and new programs run beside each other nothing is promised
// about order. What old ones leave behind them goes back into the queue soon after they have ended.
const (
	Unordered  Ordering = iota // the default
	Overtaking                 // they go on; the message takes its turn again when its retry is due
	Strict                     // they wait until it succeeds, is discarded or is dead
)

// HandleOption is an option of Handle and HandleTx.
type HandleOption[M saga.Message] func(*handleOptions[M])

type handleOptions[M saga.Message] struct{ key func(M) string }

// KeyedBy says what a message belongs to: of a Handle in an endpoint that is Ordered, or of a HandleTx in a partitioned
// one (NewPartitioned). The key is at most 512 bytes of UTF-8, and not empty: else the message is dead on its first
// attempt. The function must be quick and always give the same.
func KeyedBy[M saga.Message](key func(M) string) HandleOption[M] {
	return func(o *handleOptions[M]) { o.key = key }
}

// keyOption is the key of a consumer that was given these options, nil when it has none.
func keyOption[M saga.Message](kind string, o []HandleOption[M]) func(body []byte, codec saga.Codec) (string, error) {
	var options handleOptions[M]
	for _, set := range o {
		set(&options)
	}
	if options.key == nil {
		return nil
	}
	return func(body []byte, codec saga.Codec) (string, error) {
		var m M
		if err := codec.Decode(body, &m); err != nil {
			return "", fmt.Errorf("decode %s: %w", kind, err)
		}
		return options.key(m), nil
	}
}

const (
	mostKey     = 512
	adoptAtOnce = 64 // messages of one key that come back from the parked ones at a time
)

// checkOrder: in an ordered endpoint every kind has a key, and in no other one has.
func (h *handlers) checkOrder(o Ordering) {
	if o > Strict {
		h.fault("Ordered is %d: want Unordered, Overtaking or Strict", o)
	}
	if o != Unordered && !h.leased {
		h.fault("Ordered is for endpoints with Handle: the steps of one saga instance never run at the same time anyway")
		return
	}
	for kind, c := range h.consumers {
		switch {
		case c.leased == nil:
		case o != Unordered && c.key == nil:
			h.fault("%s has no key: an endpoint that is Ordered needs a KeyedBy for every Handle", kind)
		case o == Unordered && c.key != nil:
			h.fault("%s has a key and the endpoint no order: set EndpointOptions.Ordered to Overtaking or Strict", kind)
		}
	}
}

// lane is the right to handle the messages of one key, and what we have claimed of them.
type lane struct {
	running *claimed
	waiting []*claimed // in the order of their turns
	renewed time.Time  // by this process's clock, before the last statement that is known to have extended the right
}

// byTurn is the order of delivery.
func byTurn(a, b *claimed) int {
	if c := a.due.Compare(b.due); c != 0 {
		return c
	}
	return slices.Compare(a.id[:], b.id[:])
}

// keyOf asks the user's function, which may panic.
func (m *message) keyOf(codec saga.Codec) (key string, err error) {
	defer recovered(&err)
	key, err = m.consumer.key(m.delivery.Body, codec)
	switch {
	case err != nil:
	case key == "" || len(key) > mostKey:
		err = fmt.Errorf("the key has %d bytes, want 1 to %d", len(key), mostKey)
	case strings.ToValidUTF8(key, "") != key || strings.ContainsRune(key, 0):
		err = fmt.Errorf("the key is not UTF-8 text without NUL")
	}
	return key, err
}

// claimInOrder claims up to want messages in one transaction, which nobody else's can overlap, and parks those whose
// lanes are somebody else's. It returns how many there were.
func (l *leased) claimInOrder(ctx context.Context, conn *pgxpool.Conn, want int) (got int, err error) {
	l.rows.Lock()
	defer l.rows.Unlock()
	b := &batch{Endpoint: l.Endpoint, conn: conn.Conn()}
	defer b.abandon(ctx)
	claims, err := l.takeAlone(ctx, conn, b, want)
	if err != nil {
		return 0, fmt.Errorf("claim: %w", explain(err))
	}
	if len(claims) == 0 {
		b.abandon(ctx)
		l.wakeForNext(ctx, conn.Conn())
		return 0, nil
	}
	l.decodeInOrder(b, claims)
	e, err := l.enterLanes(ctx, conn, claims)
	if errors.Is(err, errLaneLost) {
		return want, nil // nothing is claimed, and the next claim asks for the lane
	}
	if err != nil {
		return 0, fmt.Errorf("enter lanes: %w", explain(err))
	}
	pipeline := &pgx.Batch{}
	l.queuePark(pipeline, e.park, l.session(), anyNumber)
	adopted := l.queueAdoption(pipeline, e.adopt, b.begun)
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return 0, fmt.Errorf("park messages: %w", explain(err))
	}
	l.proceed(append(e.ours, l.adopt(adopted)...))
	return b.got(claims, want), nil
}

// entered is what enterLanes found out.
type entered struct {
	ours  []*claimed // to be handled
	park  []*claimed // to be parked: the lane is somebody else's, or others are parked in it before them
	adopt []string   // keys of lanes that are ours now, and in which messages are parked
}

// takeAlone claims as take does, and leaves the transaction open.
func (l *leased) takeAlone(ctx context.Context, conn *pgxpool.Conn, b *batch, want int) (claims []*claimed, err error) {
	pipeline := &pgx.Batch{}
	b.begun = time.Now()
	l.queueOpen(pipeline)
	l.queueClaimsLock(pipeline)
	l.queueClaim(pipeline, b, want, &claims)
	return claims, conn.SendBatch(ctx, pipeline).Close()
}

// queueClaimsLock has the transaction wait until nobody else claims, and keeps everybody from it.
func (l *leased) queueClaimsLock(pipeline *pgx.Batch) {
	pipeline.Queue(l.bus.sql.Get("lock_claims"), l.queue.id)
}

// decodeInOrder decodes messages and reads their keys. What cannot be read has no key, and is finished out of order.
func (l *leased) decodeInOrder(b *batch, claims []*claimed) {
	conn := b.conn
	b.conn = nil // handlers have none
	b.prepareTurn(l.work)
	b.decodeClaimed()
	b.conn = conn
	run.Each(len(claims), func(n int) { l.readKey(b, claims[n]) }, func(n int) {
		b.fail(&claims[n].message, saga.Permanent(fmt.Errorf("key of %s: %w", claims[n].kind, errReadExited)))
	})
	slices.SortFunc(claims, byTurn)
}

// readKey asks for the key of a message that is to be handled.
func (l *leased) readKey(b *batch, c *claimed) {
	if c.fate != left || c.consumer == nil {
		return
	}
	begun := time.Now()
	key, err := c.keyOf(l.bus.codec)
	if b.readBy(&c.message, begun); c.fate != left {
		return
	}
	if err != nil {
		b.fail(&c.message, saga.Permanent(fmt.Errorf("key of %s: %w", c.kind, err)))
		return
	}
	c.key = key
}

// enterLanes asks for the lanes that we do not have. Where one of those that we believe in is lost, it gives up what we
// have in them, and returns an error.
func (l *leased) enterLanes(ctx context.Context, conn *pgxpool.Conn, claims []*claimed) (e entered, err error) {
	heads, joined := map[string]saga.ID{}, l.lanesOf(claims)
	for _, c := range claims {
		if _, known := heads[c.key]; c.key != "" && !known && joined[c.key] == nil {
			heads[c.key] = c.id
		}
	}
	a, err := l.askForLanes(ctx, conn, heads, slices.Sorted(maps.Keys(joined)), keysOf(claims))
	if err != nil {
		return e, err
	}
	for key := range joined {
		if !a.live[key] {
			l.loseLane(key)
			err = errLaneLost
		}
	}
	for key := range a.granted {
		if _, parked := a.parked[key]; parked {
			e.adopt = append(e.adopt, key)
		}
	}
	acquitFollowers(claims, a.parked)
	for _, c := range claims {
		c.lane = joined[c.key]
		_, parked := a.parked[c.key]
		if c.key == "" || (a.granted[c.key] || a.live[c.key]) && !parked {
			e.ours = append(e.ours, c)
		} else {
			e.park = append(e.park, c)
		}
	}
	return e, err
}

// errLaneLost: the process stood still, or could not extend its leases, and somebody else has the lane or may have it.
var errLaneLost = errors.New("a lane is lost")

// asked is what askForLanes found out, by key.
type asked struct {
	granted map[string]bool      // ours now
	live    map[string]bool      // ours before, and still
	parked  map[string]time.Time // the turn of the first message that is parked there
}

// askForLanes enters the lanes of heads, looks whether those that we have joined are ours, and in which of all lanes
// messages are parked.
func (l *leased) askForLanes(ctx context.Context, conn *pgxpool.Conn, heads map[string]saga.ID, joined,
	all []string) (asked, error) {
	a := asked{map[string]bool{}, map[string]bool{}, map[string]time.Time{}}
	sorted := slices.Sorted(maps.Keys(heads))
	ids := pg.UUIDs()
	for _, key := range sorted {
		ids.UUID(heads[key])
	}
	owner, session := [16]byte(l.owner), [16]byte(l.session())
	pipeline := &pgx.Batch{}
	if len(sorted) > 0 {
		pipeline.Queue(l.bus.sql.Get("enter_lanes"), l.queue.id, texts(sorted), ids, owner,
			l.options.Lease.Microseconds(), session).Query(collectKeys(a.granted))
	}
	if len(joined) > 0 {
		pipeline.Queue(l.bus.sql.Get("live_lanes"), l.queue.id, texts(joined), owner).Query(collectKeys(a.live))
	}
	pipeline.Queue(l.bus.sql.Get("parked_in"), l.queue.id, texts(all)).Query(collectTurns(a.parked))
	return a, conn.SendBatch(ctx, pipeline).Close()
}

func texts(all []string) *pg.Array {
	a := pg.Texts()
	for _, text := range all {
		a.Text(text)
	}
	return a
}

// queueAdoption queues the return of what is parked in lanes that are ours, in a transaction that began after begun.
// The batch has the messages when it was sent.
func (l *leased) queueAdoption(pipeline *pgx.Batch, keys []string, begun time.Time) *adoption {
	a := &adoption{batch: &batch{Endpoint: l.Endpoint, begun: begun}}
	if len(keys) > 0 {
		pipeline.Queue(l.queue.sql("next_parked"), l.queue.id, texts(keys), adoptAtOnce, [16]byte(l.session()),
			l.options.Lease.Microseconds(),
			l.options.BatchBytes/len(keys)).Query(func(rows pgx.Rows) error {
			a.claims = collectClaims(rows, a.batch)
			return rows.Err()
		})
	}
	return a
}

type adoption struct {
	batch  *batch
	claims []*claimed
}

// adopt decodes adopted messages. They keep their place in the lane, also when they are decided without a handler.
func (l *leased) adopt(a *adoption) []*claimed {
	if len(a.claims) == 0 {
		return nil
	}
	a.batch.prepareTurn(l.work)
	a.batch.decodeClaimed()
	return a.claims
}

func collectKeys(into map[string]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			into[pg.CurrentRow(rows).Text(0)] = true
		}
		return rows.Err()
	}
}

// collectTurns reads what parked_in says.
func collectTurns(into map[string]time.Time) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			r := pg.CurrentRow(rows)
			into[r.Text(0)] = r.Time(1)
		}
		return rows.Err()
	}
}

// lanesOf is which of the claims' lanes are ours.
func (l *leased) lanesOf(claims []*claimed) map[string]*lane {
	joined := map[string]*lane{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		if n := l.lanes[c.key]; n != nil {
			joined[c.key] = n
		}
	}
	return joined
}

func (l *leased) inLane(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lanes[key] != nil
}

const anyNumber = -1

// queuePark queues the move of messages that a session has claimed to the parked ones. The transaction fails when they
// are not so many.
func (l *leased) queuePark(pipeline *pgx.Batch, claims []*claimed, session saga.ID, all int) {
	if len(claims) == 0 {
		return
	}
	due, id, claim, key := pg.Timestamps(), pg.UUIDs(), pg.Ints(), pg.Texts()
	deaths, alone := pg.Ints(), pg.Ints()
	for _, c := range claims {
		for _, at := range c.rows {
			due.Time(at)
			id.UUID(c.id)
			claim.Int(c.number)
			key.Text(c.key)
			deaths.Int(c.crashes.deaths)
			alone.Int(c.crashes.alone)
		}
	}
	pipeline.Queue(l.queue.sql("park"), l.queue.id, due, id, claim, key, [16]byte(session), all, deaths, alone)
}

// proceed puts messages into their lanes and starts the first of each lane that stands still. What has no key is
// finished or started by itself. What was claimed for a lane that was given up meanwhile is given up with it.
func (l *leased) proceed(claims []*claimed) {
	loose, keys := l.enqueue(claims)
	l.sort(loose)
	l.startNext(keys)
}

// enqueue is the part of proceed that starts nothing: it returns the messages without a key, and the lanes to go on in.
func (l *leased) enqueue(claims []*claimed) (loose []*claimed, keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		l.holdOne(c) // before the lanes are looked at: one is given up with an older claim of the same message
		l.clock = reading{c.batch.now, c.batch.begun}
	}
	for _, c := range claims {
		n := l.lanes[c.key]
		switch {
		case c.key == "":
			loose = append(loose, c)
			continue
		case c.lane != nil && n != c.lane:
			l.loseNow(c)
			continue
		case n == nil:
			n = &lane{renewed: c.batch.begun}
			l.lanes[c.key] = n
			l.watch(c)
		}
		n.waiting = append(n.waiting, c)
		keys = append(keys, c.key)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, key := range keys {
		if n := l.lanes[key]; n != nil { // a lane that was given up in this loop has nothing to sort
			slices.SortFunc(n.waiting, byTurn)
		}
	}
	return loose, keys
}

// startNext starts the first message of each of these lanes, unless one is under way there.
func (l *leased) startNext(keys []string) {
	l.mu.Lock()
	before := len(l.suspects)
	next := l.takeHeads(keys)
	found := len(l.suspects) > before
	l.mu.Unlock()
	l.sort(next)
	if found { // the loop that claims is to face them, wherever it waits
		l.pump.wake()
		signal(l.room)
	}
}

// takeHeads takes the first message of each of these lanes. A suspect is set aside for the loop that claims. As long as
// there is one, only what needs no handler is taken: the lanes go on when the last suspect has been faced. The caller
// holds mu.
func (l *leased) takeHeads(keys []string) (next []*claimed) {
	free := make([]*lane, 0, len(keys))
	for _, key := range keys {
		n := l.lanes[key]
		if n == nil || n.running != nil || len(n.waiting) == 0 {
			continue
		}
		switch l.suspicion(n.waiting[0]) {
		case innocentYet:
			free = append(free, n)
		case suspected:
			if c := n.begin(); l.stopping {
				next = append(next, c) // nobody faces it any more: it goes back
			} else {
				l.suspects = append(l.suspects, c)
			}
		case decided:
			next = append(next, n.begin())
		}
	}
	if l.facing || len(l.suspects) > 0 {
		return next
	}
	for _, n := range free {
		next = append(next, n.begin())
	}
	return next
}

// begin takes the first message of a lane, which waits until that has met its fate.
func (n *lane) begin() *claimed {
	n.running = n.waiting[0]
	n.waiting = n.waiting[1:]
	return n.running
}
