package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ingestTx is one transaction of Ingest.
type ingestTx struct {
	border  *Border
	conn    *pgxpool.Conn
	options IngestOptions
	routes  *queue.Routes
	all     []*incoming
	order   []*queue.Queue // queues that get messages
	byQueue map[*queue.Queue][]*incoming
	letters []recoverability.Letter
}

func newIngestTx(ctx context.Context, b *Border, conn *pgxpool.Conn, o IngestOptions,
	messages []IngestMessage) *ingestTx {
	t := &ingestTx{
		border: b, conn: conn, options: o, all: make([]*incoming, len(messages)),
		byQueue: map[*queue.Queue][]*incoming{},
	}
	for n := range messages {
		t.all[n] = newIncoming(ctx, b, o, &messages[n])
	}
	return t
}

// run is the transaction: it finds the queues, claims the ids, and writes and commits. Only the claims wait, for
// transactions that have claimed the same ids.
func (t *ingestTx) run(ctx context.Context) error {
	pipeline := &pgx.Batch{}
	pipeline.Queue(queue.Begin)
	queue.Open(pipeline, nil)
	pipeline.Queue(queue.BoundIdle(), betweenStatements(t.bytes()))
	pipeline, err := t.route(ctx, pipeline)
	if err == nil {
		err = t.claim(ctx, pipeline)
	}
	if err == nil {
		err = t.write(ctx)
	}
	if err != nil {
		t.rollback(ctx)
	}
	return err
}

// bytes returns an upper bound for the largest statement: the bodies and headers of all messages.
func (t *ingestTx) bytes() (sum int) {
	for _, m := range t.all {
		sum += len(m.given.Body)
		for name, value := range m.given.Header {
			sum += len(name) + len(value)
		}
	}
	return sum
}

// route finds the queues. For events it sends the pipeline, with the lock that a new subscriber waits for, and
// returns an empty one.
func (t *ingestTx) route(ctx context.Context, pipeline *pgx.Batch) (rest *pgx.Batch, err error) {
	routes := t.border.Routes
	if t.options.Endpoint == "" {
		routes.QueueWait(pipeline, "")
		t.routes, err = routes.Newest(ctx, t.conn, pipeline)
		return &pgx.Batch{}, t.failed(err)
	}
	if t.routes, err = routes.Get(ctx, t.conn); err != nil {
		return nil, t.failed(err)
	}
	if t.routes.Endpoints[t.options.Endpoint] == nil {
		return nil, fmt.Errorf("ingest from %s: endpoint %s: %w: call Endpoint.Install, "+
			"or run the command \"edda migrate install %s\"",
			t.options.From, t.options.Endpoint, queue.ErrNotInstalled, t.options.Endpoint)
	}
	return pipeline, nil
}

// claim finds out which messages are new. A message whose id belongs to a different message is recorded under a
// computed id, in a second claim. A transaction that waits in its second claim cannot block one in its first.
func (t *ingestTx) claim(ctx context.Context, pipeline *pgx.Batch) error {
	var named []*incoming
	for _, m := range t.all {
		if m.given.ID != "" {
			named = append(named, m)
		}
	}
	outcomes, err := t.claimSome(ctx, pipeline, named)
	if err != nil {
		return err
	}
	var others []*incoming
	for n, m := range named {
		switch outcomes[n] {
		case dedup.Duplicate:
			m.state = Repeated
		case dedup.Conflict:
			m.fault = dedup.ErrConflict
			m.entry = inboxEntry{ID: conflictID(t.options.source(), m.entry), Sum: m.entry.Sum}
			others = append(others, m)
		}
	}
	if outcomes, err = t.claimSome(ctx, &pgx.Batch{}, others); err != nil {
		return err
	}
	for n, m := range others {
		if outcomes[n] != dedup.Fresh {
			m.state = Repeated
		}
	}
	return nil
}

// claimSome claims the ids of some messages. It sends the pipeline even if there are no messages.
func (t *ingestTx) claimSome(ctx context.Context, pipeline *pgx.Batch, some []*incoming) ([]dedup.Outcome, error) {
	entries := make([]inboxEntry, len(some))
	for n, m := range some {
		entries[n] = m.entry
	}
	c := t.border.Store.newInboxClaim(t.options.source(), entries)
	c.queue(pipeline)
	if err := t.send(ctx, pipeline); err != nil {
		return nil, err
	}
	if c.unsure() {
		pipeline = &pgx.Batch{}
		c.sums(pipeline)
		if err := t.send(ctx, pipeline); err != nil {
			return nil, err
		}
	}
	outcomes := make([]dedup.Outcome, len(some))
	for n := range some {
		outcomes[n] = c.outcome(n)
	}
	return outcomes, nil
}

// write inserts the new messages and the dead letters, and commits.
func (t *ingestTx) write(ctx context.Context) error {
	for _, m := range t.all {
		switch {
		case m.state == Repeated:
		case m.fault != nil:
			m.state = IngestDead
			t.letters = append(t.letters, t.lettersOf(m)...)
		default:
			t.deliver(m)
		}
	}
	pipeline := &pgx.Batch{}
	for _, q := range t.order {
		inserts := queue.NewInOrder(pipeline, q)
		for _, m := range t.byQueue[q] {
			inserts.AddOut(&m.out)
		}
		inserts.Flush()
	}
	t.border.Letters.QueueLetters(pipeline, t.letters)
	t.queueHistory(pipeline)
	pipeline.Queue("commit")
	if err := t.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		if !pgerr.Refused(err) {
			return &pgerr.UnknownOutcome{ID: t.all[0].entry.ID, Err: err}
		}
		return t.failed(err)
	}
	return nil
}

// deliver finds the queues of one message.
func (t *ingestTx) deliver(m *incoming) {
	queues := []*queue.Queue{t.routes.Endpoints[t.options.Endpoint]}
	if t.options.Endpoint == "" {
		queues = t.routes.Kinds[m.out.Info.Kind]
	}
	if len(queues) == 0 {
		m.state = Unwanted
	}
	for _, q := range queues {
		if t.byQueue[q] == nil {
			t.order = append(t.order, q)
		}
		t.byQueue[q] = append(t.byQueue[q], m)
	}
}

// lettersOf returns the dead letters of a message: one, or, for an event, one for each subscriber, so that each can
// be retried.
func (t *ingestTx) lettersOf(m *incoming) []recoverability.Letter {
	endpoints := []string{t.options.Endpoint}
	if t.options.Endpoint == "" {
		endpoints[0] = "ingest"
		for n, q := range t.routes.Kinds[m.given.Kind] {
			endpoints = append(endpoints[:n], q.Endpoint)
		}
	}
	reason := "it cannot be a message of Edda"
	if errors.Is(m.fault, dedup.ErrConflict) {
		reason = "a different message has its id"
	}
	letters := make([]recoverability.Letter, len(endpoints))
	for n, endpoint := range endpoints {
		letters[n] = recoverability.Letter{
			Endpoint: endpoint, MessageID: m.out.Info.ID, Kind: m.given.Kind, Header: m.letterHeader(),
			Body: m.given.Body, Reason: reason, Error: fmt.Sprintf("ingested from %s: %v", t.options.From, m.fault),
		}
	}
	return letters
}

func (t *ingestTx) send(ctx context.Context, pipeline *pgx.Batch) error {
	if pipeline.Len() == 0 {
		return nil
	}
	return t.failed(t.conn.SendBatch(ctx, pipeline).Close())
}

func (t *ingestTx) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ingest from %s: %w", t.options.From, pgerr.Explain(err))
}

func (t *ingestTx) rollback(ctx context.Context) {
	if t.conn.Conn().IsClosed() || t.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := t.conn.Exec(ctx, "rollback"); err != nil {
		t.border.Log.Debug("edda: rollback failed", "source", t.options.From, "error", err)
	}
}

// after wakes the workers, and reports the committed messages to the log and as events.
func (t *ingestTx) after(ctx context.Context) {
	b := t.border
	for _, q := range t.order {
		b.Notifier.Wake(ctx, q.ID, time.Time{})
	}
	e := event.Ingested{Source: t.options.From, Endpoint: t.options.Endpoint}
	for _, m := range t.all {
		switch m.state {
		case Accepted:
			e.Accepted++
		case Repeated:
			e.Repeated++
		case Unwanted:
			e.Unwanted++
		case IngestDead:
			e.Dead++
		}
		if m.given.ID == "" {
			e.Unnamed++
		}
	}
	b.Events(e)
	for _, l := range t.letters {
		info, read := saga.Info{ID: l.MessageID, Kind: wire.Shown(l.Kind)}, saga.Info{}
		_ = wire.ReadHeader(l.Header, &read) // for its trace; the header may be invalid
		args := []any{"endpoint", l.Endpoint, "message_id", l.MessageID.String(), "kind", info.Kind,
			"source", t.options.From, "reason", l.Reason, "error", l.Error}
		b.Log.WarnContext(ctx, "edda: message dead-lettered", wire.AppendTrace(args, &read)...)
		b.Events(event.DeadLettered{Endpoint: l.Endpoint, Info: info, Err: errors.New(l.Error), Reason: l.Reason})
	}
}

func (t *ingestTx) results() []IngestResult {
	results := make([]IngestResult, len(t.all))
	for n, m := range t.all {
		results[n] = IngestResult{ID: m.out.Info.ID, State: m.state}
		if m.state == IngestDead {
			results[n].Err = m.fault
		}
	}
	return results
}
