package whereabouts

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

//go:embed whereabouts.sql
var statements string

// Reader reads one schema. It is safe for concurrent use.
type Reader struct {
	pool   *pg.Pool
	schema pg.Schema
	sql    pg.Statements
	routes *queue.Router
	near   bool // see Near

	history  *history.Store
	sagas    *persistence.Store
	letters  *deadletter.Store
	outbox   *outbox.Store
	settings *settings.Store
}

// New returns a reader. operate.Operator.History calls it.
func New(pool *pg.Pool, schema pg.Schema, routes *queue.Router) *Reader {
	return &Reader{
		pool: pool, schema: schema, sql: pg.Load(statements, schema), routes: routes, history: history.New(schema),
		sagas: persistence.New(schema), letters: deadletter.New(schema), outbox: outbox.New(schema),
		settings: settings.New(schema),
	}
}

// Message is the recorded data of one message.
type Message struct {
	ID       saga.ID
	Info     history.Message // from the history or a queue; without Kind if only its id is known
	Attempts []history.Entry // in the order of time
	Places   []Place         // at least one; one for each endpoint that it was sent to
}

// Known reports whether anything is recorded about m.
func (m *Message) Known() bool {
	return len(m.Places) > 1 || len(m.Places) == 1 && m.Places[0].State != Unknown
}

// Message returns the place of a message, and its end. If nothing is recorded about it, its only place is Unknown.
func (r *Reader) Message(ctx context.Context, id saga.ID) (m Message, err error) {
	return r.MessageOf(ctx, history.Message{ID: id})
}

// MessageOf is Message for a message with more known data than its ID. Its due time helps Near to find it.
func (r *Reader) MessageOf(ctx context.Context, known history.Message) (m Message, err error) {
	err = r.look(ctx, func(s *snapshot) error {
		attempts, err := r.history.Messages(ctx, s.tx, known.ID)
		if err != nil {
			return err
		}
		m = Message{ID: known.ID, Info: known, Attempts: attempts[known.ID]}
		return s.find(ctx, MostBefore, &m)
	})
	if err != nil {
		return Message{}, fmt.Errorf("look for message %s: %w", known.ID, pgerr.Explain(err))
	}
	return m, nil
}

// Messages is Message for several messages in one snapshot, in their order. The known data, at least the ID, help to
// find them. For each queued message it counts the messages before it, up to 1,000.
func (r *Reader) Messages(ctx context.Context, known ...history.Message) (all []Message, err error) {
	ids := make([]saga.ID, len(known))
	for n := range known {
		ids[n] = known[n].ID
	}
	err = r.look(ctx, func(s *snapshot) error {
		attempts, err := r.history.Messages(ctx, s.tx, ids...)
		if err != nil {
			return err
		}
		all = make([]Message, len(ids))
		found := make([]*Message, len(ids))
		for n, id := range ids {
			all[n] = Message{ID: id, Info: known[n], Attempts: attempts[id]}
			found[n] = &all[n]
		}
		return s.find(ctx, mostBeforeInTree, found...)
	})
	if err != nil {
		return nil, fmt.Errorf("look for %d messages: %w", len(ids), pgerr.Explain(err))
	}
	return all, nil
}

// snapshot is one snapshot of the database.
type snapshot struct {
	*Reader
	tx     pgx.Tx
	known  *queue.Routes
	unread map[saga.ID]string // by id: an endpoint whose queue was not read to its end for that id
}

// look calls do with a snapshot, and again with a newer one if a queue was dropped in the meantime.
func (r *Reader) look(ctx context.Context, do func(s *snapshot) error) error {
	err := r.lookOnce(ctx, do)
	if pgerr.ClassOf(err) == pgerr.Unprepared {
		err = r.lookOnce(ctx, do)
	}
	return err
}

func (r *Reader) lookOnce(ctx context.Context, do func(s *snapshot) error) error {
	known, err := r.routes.Reload(ctx, r.pool)
	if err != nil {
		return err
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, r.pool, options, func(tx pgx.Tx) error {
		return do(&snapshot{r, tx, known, map[saga.ID]string{}})
	})
}

// find completes messages that have their ids and attempts.
func (s *snapshot) find(ctx context.Context, most int64, messages ...*Message) error {
	byID := make(map[saga.ID]*Message, len(messages))
	ids := make([]saga.ID, 0, len(messages))
	for _, m := range messages {
		byID[m.ID] = m
		ids = append(ids, m.ID)
		if n := len(m.Attempts); n > 0 {
			m.Info = m.Attempts[n-1].Info
		}
	}
	found, err := s.locate(ctx, messages, most)
	if err != nil {
		return err
	}
	places := make([]Place, len(found))
	for n := range found {
		places[n] = found[n].place()
	}
	if err := s.hinder(ctx, s.tx, found, places); err != nil {
		return err
	}
	for n := range found {
		m := byID[found[n].info.ID]
		m.Places = append(m.Places, places[n])
		if m.Info.Kind == "" {
			m.Info = found[n].info
		}
	}
	if err := s.findEndings(ctx, byID, ids); err != nil {
		return err
	}
	for _, m := range messages {
		s.conclude(m)
	}
	return nil
}

// findEndings adds the places of messages that were not handled but ended otherwise.
func (s *snapshot) findEndings(ctx context.Context, byID map[saga.ID]*Message, ids []saga.ID) error {
	letters, discarded, err := s.letters.Endings(ctx, s.tx, ids...)
	if err != nil {
		return err
	}
	for _, l := range letters {
		s.add(byID[l.MessageID], l.Kind, Place{
			State: Dead, Endpoint: l.Endpoint, At: l.Died, Attempt: l.Attempts, Letter: l.Number, Error: l.Error,
			Reason: l.Reason,
		})
	}
	slices.Reverse(discarded) // the newest of each endpoint counts
	for _, d := range discarded {
		s.add(byID[d.MessageID], d.Kind, Place{State: Discarded, Endpoint: d.Endpoint, At: d.At, Reason: d.Reason})
	}
	kept, err := s.outbox.KeptOf(ctx, s.tx, ids...)
	if err != nil {
		return err
	}
	slices.Reverse(kept)
	for _, k := range kept {
		s.add(byID[k.ID], k.Kind, Place{State: Relayed, Endpoint: k.Endpoint, Relay: true, At: k.Relayed.UTC()})
	}
	return nil
}

// add adds a place to m, unless m has a place in the same endpoint. A message may have died there twice.
func (s *snapshot) add(m *Message, kind string, p Place) {
	if s.tells(m, p.Endpoint) && p.Letter == 0 {
		return
	}
	m.Places = append(m.Places, p)
	if m.Info.Kind == "" {
		m.Info.ID, m.Info.Kind = m.ID, kind
	}
}

func (s *snapshot) tells(m *Message, endpoint string) bool {
	base := baseOf(s.known, endpoint)
	return slices.ContainsFunc(m.Places, func(p Place) bool { return baseOf(s.known, p.Endpoint) == base })
}

// conclude adds the places that only the history has, the newest for each endpoint.
func (s *snapshot) conclude(m *Message) {
	for _, e := range slices.Backward(m.Attempts) {
		if e.Fate == history.Ingested && len(m.Places) > 0 || s.tells(m, e.Endpoint) {
			continue
		}
		m.Places = append(m.Places, placeOf(&e))
	}
	if len(m.Places) == 0 {
		m.Places = []Place{{State: Unknown, Unread: s.unread[m.ID], Asked: m.ID}}
	}
	slices.SortStableFunc(m.Places, func(a, b Place) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
}

// placeOf returns the place of a message in an endpoint from its last attempt there.
func placeOf(e *history.Entry) Place {
	p := Place{
		Endpoint: e.Endpoint, At: e.At, Attempt: e.Info.Attempt, Process: e.Host, Error: e.Error, Reason: e.Reason,
	}
	switch e.Fate {
	case history.Handled:
		p.State, p.Did = Handled, did(e)
	case history.Discarded:
		if p.State = Discarded; p.Reason == "" {
			p.Reason = e.Error
		}
	case history.Relayed:
		p.State, p.Relay = Relayed, true
	case history.Ingested:
		p.State = Ingested
	case history.Died:
		if p.State = Dead; e.Info.Run.IsZero() {
			p.State, p.Reason = Gone, "It was a dead letter, and has been retried, edited or discarded since."
		}
	default:
		p.State, p.Reason = Gone, ""
	}
	return p
}

// did describes the effect of a message on an instance.
func did(e *history.Entry) string {
	switch {
	case e.Saga == "":
		return ""
	case e.Version == 1:
		return fmt.Sprintf(", and began %s %s", e.Saga, e.Key)
	}
	return fmt.Sprintf(", in version %d of %s %s", e.Version, e.Saga, e.Key)
}
