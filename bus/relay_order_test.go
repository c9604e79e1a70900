package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Writers send in pairs: the second of a pair is written when the first is committed. Transactions stay open for
// different times, so that the order of commits differs from that of the due times.
func TestRelayKeepsCausalOrder(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	o := soonRelayed()
	o.BatchMax = 7
	w.runRelay(w.relay(w.bus, o, a.forward))
	const writers, pairs = 6, 40
	causes := make([][2]saga.ID, writers*pairs)
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			for p := range pairs {
				for half := range 2 {
					causes[n*pairs+p][half] = w.sendSlowly((n + p + half) % 4)
				}
			}
		})
	}
	wg.Wait()
	w.untilEmpty("border")
	place := map[saga.ID]int{}
	for n, id := range a.firsts() {
		place[id] = n
	}
	if len(place) != 2*len(causes) {
		t.Errorf("%d messages arrived, want %d", len(place), 2*len(causes))
	}
	for _, c := range causes {
		if place[c[0]] >= place[c[1]] {
			t.Errorf("%s came at %d, and %s, which was committed before that was written, at %d", c[1], place[c[1]],
				c[0], place[c[0]])
		}
	}
}

// sendSlowly sends in a transaction that runs a few more statements after that.
func (w *world) sendSlowly(statements int) (id saga.ID) {
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		sent, err := w.bus.SendTx(w.t.Context(), tx, crossed{})
		if err != nil {
			return err
		}
		id = sent.ID
		for range statements {
			if _, err := tx.Exec(w.t.Context(), `SELECT pg_sleep(0.002)`); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
	return id
}

// A message is due before the mark of a relay, and committed after it: messages that follow from it must come later.
func TestRelayMarkHidesNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	tx := w.begin()
	// A statement of ten seconds ago. The others are newer, but older than the slack of a mark, and fill three takes.
	first := saga.ID{15: 1}
	w.execTx(tx, w.sql(`INSERT INTO `+w.queue("border")+` (due, id, kind, header, body)
		VALUES (now() - interval '10 s', '`+first.String()+`', 'border.crossed', '{}', '{}')`))
	w.exec(`INSERT INTO ` + w.queue("border") + ` (due, id, kind, header, body)
		SELECT now() - interval '2 s' + n * interval '1 us', gen_random_uuid(), 'border.crossed', '{}', '{}'
		FROM generate_series(1, 1200) n`)
	a, calls := &abroad{}, 0
	var second saga.ID
	w.runRelay(w.relay(w.bus, soonRelayed(), func(ctx context.Context, m []*saga.Delivery) []error {
		if calls++; calls == 2 {
			if err := tx.Commit(t.Context()); err != nil {
				t.Error(err)
			}
			second = w.send(crossed{Key: "late"}).ID
		}
		return a.forward(ctx, m)
	}))
	w.until("all are relayed", func() bool { return len(a.ids()) == 1202 })
	if got := a.ids(); got[1000] != first || got[1201] != second {
		t.Errorf("%s came at %d, want at 1000, and %s at %d, want at the end", first, slices.Index(got, first), second,
			slices.Index(got, second))
	}
}

// A crash between forward and the deletion: all messages come again, with the same ids and in the same order. The first
// relay cannot delete any message, and ends; its memory of the forwarded messages is lost.
func TestRelayRepeatsAfterACrash(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	want := w.sendCrossed(20)
	w.refuseMany("DELETE", w.queue("border"), "57014", 0)
	a := &abroad{}
	stop := w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.until("all have come", func() bool { return len(a.ids()) == 20 })
	stop()
	w.exec(`DROP TRIGGER refuse_many ON ` + w.queue("border"))
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("%d messages came, want 20 twice, in their order:\n%v, want\n%v", len(got), got, want)
	}
}

// If connections break between forward and the deletion, the relay still remembers the forwarded messages.
func TestRelayWhoseConnectionsBreakGivesNothingAgain(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	want := w.sendCrossed(20)
	a := &abroad{}
	var breaks atomic.Int32
	o := soonRelayed()
	o.BatchMax = 5
	w.runRelay(w.relay(w.bus, o, func(ctx context.Context, m []*saga.Delivery) []error {
		errs := a.forward(ctx, m)
		if breaks.Add(1) <= 3 { // before it can delete
			w.breakRelays()
		}
		return errs
	}))
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("relayed\n%v, want\n%v", got, want)
	}
}

// breakRelays ends the sessions that have taken from a queue.
func (w *world) breakRelays() {
	w.exec(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE query LIKE '%` + w.schema + `%' AND query LIKE '%LIMIT $1%' AND query LIKE '%octet_length(q.body)%' ` +
		`AND query NOT LIKE '%pg_terminate%' AND pid <> pg_backend_pid()`)
}

// One of two processes relays. When the holder dies, the other relays when the lease has ended.
func TestRelayIsTakenOver(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	one, two := &abroad{}, &abroad{}
	other := w.newBus(bus.Options{Schema: w.schema, Logger: slog.New(slog.DiscardHandler)})
	dies := make(chan struct{})
	var dead atomic.Bool
	first := w.relay(w.bus, soonRelayed(), func(ctx context.Context, m []*saga.Delivery) []error {
		errs := one.forward(ctx, m)
		if dead.Load() {
			<-dies // freezes, and does not come back
		}
		return errs
	})
	w.runRelay(first)
	t.Cleanup(func() { close(dies) })
	w.until("the first relays", first.Holding)
	second := w.relay(other, soonRelayed(), two.forward)
	w.runRelay(second)
	w.sendCrossed(10)
	w.untilEmpty("border")
	if second.Holding() || len(two.ids()) > 0 {
		t.Errorf("both relay: %v", two.ids())
	}
	dead.Store(true)
	want := w.sendCrossed(5)
	w.until("the first has them in hand", func() bool { return len(one.ids()) > 10 })
	w.exec(`UPDATE edda.lease SET expires = clock_timestamp(), holder = 'a dead process' WHERE name = 'relay/border'`)
	w.until("the second has relayed all", func() bool { return slices.Equal(two.firsts(), want) })
	w.untilEmpty("border")
}

// A relay on standby takes over as soon as the relaying process has stopped, and not with its next bid, which comes
// after four seconds at least.
func TestStandbyRelaysWhenTheLeaseIsFree(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	took := time.Hour
	for n := 0; n < 3 && took > 3*time.Second; n++ { // a busy machine is slow once
		o, said := soonRelayed(), &lines{}
		o.Lease = time.Hour
		first := w.relay(w.bus, o, (&abroad{}).forward)
		stop := w.runRelay(first)
		w.until("the first relays", first.Holding)
		o.Logger = slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
		second := w.relay(w.process(w.dsn, bus.Options{}), o, (&abroad{}).forward)
		stopSecond := w.runRelay(second)
		w.until("the second has bid", func() bool { return strings.Contains(said.String(), "another process holds") })
		stop()
		begun := time.Now()
		w.until("the second relays", second.Holding)
		took = time.Since(begun)
		stopSecond()
	}
	if took > 3*time.Second {
		t.Errorf("it took over after %v", took)
	}
}

// A holder that was frozen while a different process took over deletes nothing.
func TestStaleRelayDeletesNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	stand := newGate(t)
	a := &abroad{}
	w.sendCrossed(5) // before the relay takes, so that it has all of them in hand
	w.runRelay(w.relay(w.bus, soonRelayed(), func(ctx context.Context, m []*saga.Delivery) []error {
		stand.pass()
		return a.forward(ctx, m)
	}))
	await(w, "the messages are in hand", stand.came)
	w.exec(`UPDATE edda.lease SET epoch = epoch + 1, holder = 'another', expires = clock_timestamp() + interval '1 h'
		WHERE name = 'relay/border'`)
	stand.open()
	w.until("they are given", func() bool { return len(a.ids()) == 5 })
	w.until("the term is over", func() bool {
		return w.count(`SELECT count(*) FROM pg_locks WHERE relation = '`+w.sql(w.queue("border"))+
			`'::regclass AND mode = 'RowExclusiveLock'`) == 0 &&
			len(eventsOf[event.RelayHeld](w)) == 2
	})
	w.want(5, `SELECT count(*) FROM `+w.queue("border"))
	if n := len(eventsOf[event.Relayed](w)); n > 0 {
		t.Errorf("%d events tell of messages that were relayed", n)
	}
	w.exec(`UPDATE edda.lease SET expires = clock_timestamp() WHERE name = 'relay/border'`)
	w.untilEmpty("border")
}

// No session of this schema has a transaction open while forward runs.
func TestRelayForwardsOutsideOfTransactions(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	stand := newGate(t)
	w.runRelay(w.relay(w.bus, soonRelayed(), func(context.Context,
		[]*saga.Delivery) []error {
		stand.pass()
		return nil
	}))
	w.sendCrossed(5)
	await(w, "forward runs", stand.came)
	open := func() int {
		return w.count(`SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
			WHERE a.xact_start IS NOT NULL AND l.relation = '` + w.sql(w.queue("border")) +
			`'::regclass AND a.pid <> pg_backend_pid()`)
	}
	if n := open(); n > 0 {
		t.Errorf("%d transactions hold the queue while forward runs", n)
	}
	w.want(0, `SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND query LIKE '%`+
		w.schema+`%'`)
	stand.open()
	w.untilEmpty("border")
}

// The fault occurs in the middle of a batch: the messages that were forwarded before it are deleted, and no others.
func TestRelayDeletesWhatItRelayed(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	want := w.sendCrossed(30)
	a := &abroad{}
	var once sync.Once
	broken := errors.New("the broker went away")
	a.set(func(d *saga.Delivery) (err error) {
		if d.Info.ID == want[12] {
			once.Do(func() { err = broken })
		}
		return err
	})
	o := soonRelayed()
	o.Retry, o.MaxRetryDelay = time.Hour, time.Hour
	stop := w.runRelay(w.relay(w.bus, o, a.forward))
	w.until("the first are deleted", func() bool { return w.count(`SELECT count(*) FROM `+w.queue("border")) == 18 })
	if first := w.text(`SELECT id::text FROM ` + w.queue("border") +
		` ORDER BY due, id LIMIT 1`); first != want[12].String() {
		t.Errorf("%s is at the head, want the one that failed, %s", first, want[12])
	}
	stop()
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("relayed\n%v, want\n%v", got, want)
	}
	if failed := eventsOf[event.Retried](w); len(failed) != 1 || !errors.Is(failed[0].Err, broken) {
		t.Errorf("failures that were told of: %v", failed)
	}
}

// A message that is due later waits, whatever comes behind it, and is relayed when it is due, without a poll.
func TestRelayWaitsForWhatIsDueLater(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	o := soonRelayed()
	o.Poll = time.Hour
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.send(crossed{}, saga.Delay(time.Hour))
	now := w.send(crossed{})
	w.until("one is relayed", func() bool { return w.count(`SELECT count(*) FROM `+w.queue("border")) == 1 })
	late := w.send(crossed{}, saga.Delay(100*time.Millisecond))
	w.until("both are told of", func() bool { return len(eventsOf[event.Relayed](w)) == 2 })
	if got := a.ids(); !slices.Equal(got, []saga.ID{now.ID, late.ID}) {
		t.Errorf("relayed %v, want %v and then %v", got, now.ID, late.ID)
	}
	if told := eventsOf[event.Relayed](w); told[1].Messages != 1 || told[1].Lag < 0 || told[1].Lag > 20*time.Second {
		t.Errorf("the events are %+v", told)
	}
}

// All ways to send lead to the queue, in the transaction of the caller: a rollback leaves no message.
func TestEverythingReachesTheRelay(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	undone := errors.New("undone")
	for _, end := range []error{nil, undone} {
		err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
			_, err := w.bus.SendTx(t.Context(), tx, crossed{})
			if err == nil {
				_, err = w.bus.PublishTx(t.Context(), tx, crossed{})
			}
			if err == nil {
				_, err = tx.Exec(t.Context(), w.sql(`SELECT edda.send(kind => 'border.crossed', body => '{}'::bytea)`))
			}
			return errors.Join(err, end)
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}
	w.send(crossed{})
	if _, err := w.bus.Publish(t.Context(), crossed{}); err != nil {
		t.Fatal(err)
	}
	// A saga that sends, publishes and answers; one of its two messages fails after that.
	traveller := saga.Define("traveller", saga.Options{},
		saga.StartedBy(func(m greet) string { return m.Key }, (*journey).go_))
	w.start("travellers", bus.EndpointOptions{Policy: giveUp}, bus.Saga(traveller))
	w.send(greet{Key: "good"})
	w.send(greet{Key: "bad"})
	w.untilEmpty("travellers")
	w.want(1, `SELECT count(*) FROM edda.dead_letter`)
	a := &abroad{}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	if got := a.firsts(); len(got) != 8 {
		t.Errorf("%d messages reached the other side, want 3 of a transaction, 2 of calls and 3 of a saga: %v",
			len(got), got)
	}
	from := map[string]int{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, info := range a.infos {
		from[fmt.Sprint(info.From, " ", info.Intent)]++
	}
	if from["travellers send"] != 2 || from["travellers publish"] != 1 {
		t.Errorf("who sent what: %v", from)
	}
}

type journey struct{ N int }

func (j *journey) go_(ctx *saga.Context, m greet) error {
	j.N++
	ctx.Send(crossed{Key: m.Key})
	ctx.Publish(crossed{Key: m.Key})
	ctx.Send(crossed{Key: m.Key}, saga.To("border"))
	if strings.HasPrefix(m.Key, "bad") {
		return saga.Permanent(errors.New("bad"))
	}
	return nil
}
