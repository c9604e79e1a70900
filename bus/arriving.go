package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// arriving is one transaction of Arrive.
type arriving struct {
	bus     *Bus
	conn    *pgxpool.Conn
	options ArriveOptions
	routes  *queue.Routes
	all     []*arrival
	order   []*queue.Queue // that get something
	byQueue map[*queue.Queue][]*arrival
	letters []deadletter.Letter
}

func newArriving(b *Bus, conn *pgxpool.Conn, o ArriveOptions, messages []Arrival) *arriving {
	a := &arriving{bus: b, conn: conn, options: o, all: make([]*arrival, len(messages)),
		byQueue: map[*queue.Queue][]*arrival{}}
	for n := range messages {
		a.all[n] = newArrival(o, &messages[n])
	}
	return a
}

// bring is the transaction: who gets messages, which of them are new, and the writes with the commit. After the claims,
// which wait for those who have the same ids in hand, nothing waits.
func (a *arriving) bring(ctx context.Context) error {
	pipeline := &pgx.Batch{}
	pipeline.Queue(queue.Begin)
	pipeline.Queue(queue.Open())
	pipeline.Queue(queue.BoundIdle(), betweenStatements(a.bytes()))
	pipeline, err := a.route(ctx, pipeline)
	if err == nil {
		err = a.claim(ctx, pipeline)
	}
	if err == nil {
		err = a.write(ctx)
	}
	if err != nil {
		a.rollback(ctx)
	}
	return err
}

// bytes is an upper bound for the largest statement: the bodies and headers of all messages.
func (a *arriving) bytes() (sum int) {
	for _, m := range a.all {
		sum += len(m.given.Body)
		for name, value := range m.given.Header {
			sum += len(name) + len(value)
		}
	}
	return sum
}

// route finds the queues. For events it sends the pipeline, with the lock that a subscriber waits for who is being
// added, and returns an empty one.
func (a *arriving) route(ctx context.Context, pipeline *pgx.Batch) (rest *pgx.Batch, err error) {
	if a.options.Endpoint == "" {
		a.bus.routes.QueueWait(pipeline, "")
		a.routes, err = a.bus.routes.Newest(ctx, a.conn, pipeline)
		return &pgx.Batch{}, a.failed(err)
	}
	if a.routes, err = a.bus.routes.Get(ctx, a.conn); err != nil {
		return nil, a.failed(err)
	}
	if a.routes.Endpoints[a.options.Endpoint] == nil {
		return nil, fmt.Errorf("arrive from %s: endpoint %s: %w: call Endpoint.Install, or run the command \"edda "+
			"migrate install %s\"",
			a.options.From, a.options.Endpoint, ErrNotInstalled, a.options.Endpoint)
	}
	return pipeline, nil
}

// claim finds out which messages are new. Those that come with the id of another message are remembered under an id of
// their own, in a second claim; whoever waits there has nothing more to claim that somebody in the first could wait
// for.
func (a *arriving) claim(ctx context.Context, pipeline *pgx.Batch) error {
	var named []*arrival
	for _, m := range a.all {
		if m.given.ID != "" {
			named = append(named, m)
		}
	}
	outcomes, err := a.reception(ctx, pipeline, named)
	if err != nil {
		return err
	}
	var others []*arrival
	for n, m := range named {
		switch outcomes[n] {
		case outbox.Duplicate:
			m.state = Repeated
		case outbox.Conflict:
			m.fault = ErrIDConflict
			m.claim = outbox.Received{ID: outbox.ConflictID(a.options.source(), m.claim), Sum: m.claim.Sum}
			others = append(others, m)
		}
	}
	if outcomes, err = a.reception(ctx, nil, others); err != nil {
		return err
	}
	for n, m := range others {
		if outcomes[n] != outbox.Fresh {
			m.state = Repeated
		}
	}
	return nil
}

// reception claims the ids of some messages. The pipeline, which may be nil, is sent even when there are none.
func (a *arriving) reception(ctx context.Context, pipeline *pgx.Batch, some []*arrival) ([]outbox.Outcome, error) {
	ids := make([]outbox.Received, len(some))
	for n, m := range some {
		ids[n] = m.claim
	}
	r := a.bus.ids.NewReception(a.options.source(), ids)
	if pipeline == nil {
		pipeline = &pgx.Batch{}
	}
	r.Queue(pipeline)
	if err := a.send(ctx, pipeline); err != nil {
		return nil, err
	}
	if r.Unsure() {
		pipeline = &pgx.Batch{}
		r.Sums(pipeline)
		if err := a.send(ctx, pipeline); err != nil {
			return nil, err
		}
	}
	outcomes := make([]outbox.Outcome, len(some))
	for n := range some {
		outcomes[n] = r.Outcome(n)
	}
	return outcomes, nil
}

// write inserts what is new, and commits.
func (a *arriving) write(ctx context.Context) error {
	for _, m := range a.all {
		switch {
		case m.state == Repeated:
		case m.fault != nil:
			m.state = ArrivedDead
			a.letters = append(a.letters, a.lettersOf(m)...)
		default:
			a.deliver(m)
		}
	}
	pipeline := &pgx.Batch{}
	for _, q := range a.order {
		in := queue.NewInOrder(pipeline, q)
		for _, m := range a.byQueue[q] {
			in.AddOut(&m.out)
		}
		in.Flush()
	}
	a.bus.letters.QueueLetters(pipeline, a.letters)
	pipeline.Queue("commit")
	if err := a.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		if !pg.Refused(err) {
			return &OutcomeUnknownError{ID: a.all[0].claim.ID, Err: err}
		}
		return a.failed(err)
	}
	return nil
}

// deliver finds the queues of one message.
func (a *arriving) deliver(m *arrival) {
	queues := []*queue.Queue{a.routes.Endpoints[a.options.Endpoint]}
	if a.options.Endpoint == "" {
		queues = a.routes.Kinds[m.out.Info.Kind]
	}
	if len(queues) == 0 {
		m.state = Unwanted
	}
	for _, q := range queues {
		if a.byQueue[q] == nil {
			a.order = append(a.order, q)
		}
		a.byQueue[q] = append(a.byQueue[q], m)
	}
}

const arrivedBadly = "it cannot be a message here"

// lettersOf are the dead letters of a message: one, or that of each subscriber of an event, so that each can be
// retried.
func (a *arriving) lettersOf(m *arrival) []deadletter.Letter {
	endpoints := []string{a.options.Endpoint}
	if a.options.Endpoint == "" {
		endpoints[0] = "arrivals"
		for n, q := range a.routes.Kinds[m.given.Kind] {
			endpoints = append(endpoints[:n], q.Endpoint)
		}
	}
	reason := arrivedBadly
	if errors.Is(m.fault, ErrIDConflict) {
		reason = "its id belongs to another message"
	}
	letters := make([]deadletter.Letter, len(endpoints))
	for n, endpoint := range endpoints {
		letters[n] = deadletter.Letter{
			Endpoint: endpoint, MessageID: m.out.Info.ID, Kind: m.given.Kind, Header: m.letterHeader(),
			Body:   m.given.Body,
			Reason: reason, Error: fmt.Sprintf("arrived from %s: %v", a.options.From, m.fault),
		}
	}
	return letters
}

func (a *arriving) send(ctx context.Context, pipeline *pgx.Batch) error {
	if pipeline.Len() == 0 {
		return nil
	}
	return a.failed(a.conn.SendBatch(ctx, pipeline).Close())
}

func (a *arriving) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("arrive from %s: %w", a.options.From, pg.Explain(err))
}

func (a *arriving) rollback(ctx context.Context) {
	if a.conn.Conn().IsClosed() || a.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := a.conn.Exec(ctx, "rollback"); err != nil {
		a.bus.log.Debug("edda: rollback", "source", a.options.From, "error", err)
	}
}

// after tells the workers, the log and the events what was committed.
func (a *arriving) after(ctx context.Context) {
	b := a.bus
	for _, q := range a.order {
		b.notifier.Wake(ctx, q.ID, time.Time{})
	}
	e := Arrivals{Source: a.options.From, Endpoint: a.options.Endpoint}
	for _, m := range a.all {
		switch m.state {
		case Accepted:
			e.Accepted++
		case Repeated:
			e.Repeated++
		case Unwanted:
			e.Unwanted++
		case ArrivedDead:
			e.Dead++
		}
		if m.given.ID == "" {
			e.Unnamed++
		}
	}
	b.emit(e)
	for _, l := range a.letters {
		info := saga.Info{ID: l.MessageID, Kind: shownKind(l.Kind)}
		b.log.LogAttrs(ctx, slog.LevelWarn, "edda: message dead-lettered", slog.String("endpoint", l.Endpoint),
			slog.String("message_id", l.MessageID.String()),
			slog.String("kind", info.Kind), slog.String("source", a.options.From), slog.String("reason", l.Reason),
			slog.String("error", l.Error))
		b.emit(DeadLettered{Endpoint: l.Endpoint, Info: info, Err: errors.New(l.Error), Reason: l.Reason})
	}
}

func (a *arriving) results() []Arrived {
	results := make([]Arrived, len(a.all))
	for n, m := range a.all {
		results[n] = Arrived{ID: m.out.Info.ID, State: m.state}
		if m.state == ArrivedDead {
			results[n].Err = m.fault
		}
	}
	return results
}
