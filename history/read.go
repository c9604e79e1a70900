package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// pages reads the wanted parts of pages by their ids. A page that no longer exists is left out.
func (s *Store) pages(ctx context.Context, q pg.Queryer, ids []saga.ID, want wanted) (map[saga.ID]content, error) {
	found := make(map[saga.ID]content, len(ids))
	for some := range slices.Chunk(ids, pagesAtOnce) {
		raw := make([][16]byte, len(some))
		for n, id := range some {
			raw[n] = id
		}
		rows, err := q.Query(ctx, s.sql.Get("pages"), raw)
		if err != nil {
			return nil, fmt.Errorf("read pages of the history: %w", err)
		}
		for rows.Next() {
			row := pg.CurrentRow(rows)
			id := saga.ID(row.UUID(0))
			c, err := decodePage(slices.Clone(row.Bytes(2)), want)
			if errors.Is(err, ErrNewer) && len(want.messages) > 0 {
				continue // its range covers the id, but only newer programs can read it
			}
			if err != nil {
				rows.Close()
				return nil, fmt.Errorf("page %s of the history: %w", id, err)
			}
			if len(c.entries)+len(c.versions) > 0 {
				c.name(id, row.Text(1), row.Time(3))
				found[id] = c
			}
		}
		if err := rows.Err(); err != nil {
			return nil, fmt.Errorf("read pages of the history: %w", err)
		}
	}
	return found, nil
}

const pagesAtOnce = 50

// name adds the data of the page's row to its entries and versions.
func (c *content) name(id saga.ID, endpoint string, at time.Time) {
	c.at = at
	for n := range c.entries {
		e := &c.entries[n]
		e.Page, e.Endpoint, e.At = id, endpoint, at
	}
	for n := range c.versions {
		c.versions[n].Page, c.versions[n].At = id, c.at
	}
}

// mostOfOne is the largest number of pages that are read for one id.
const mostOfOne = 200

// find returns the wanted parts of the pages that may contain the ids, in the order of time. For each id it reads the
// newest mostOfOne pages.
func (s *Store) find(ctx context.Context, q pg.Queryer, ids []saga.ID, want wanted) ([]content, error) {
	from, until := make([][16]byte, len(ids)), make([][16]byte, len(ids))
	for n, id := range ids {
		from[n], until[n] = id, lastOfRange(id)
	}
	rows, err := q.Query(ctx, s.sql.Get("find"), from, until, mostOfOne)
	if err != nil {
		return nil, fmt.Errorf("look for %d ids in the history: %w", len(ids), err)
	}
	seen := map[saga.ID]bool{}
	for rows.Next() {
		seen[pg.CurrentRow(rows).UUID(1)] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look for %d ids in the history: %w", len(ids), err)
	}
	order := make([]saga.ID, 0, len(seen))
	for id := range seen {
		order = append(order, id)
	}
	slices.SortFunc(order, saga.ID.Compare)
	pages, err := s.pages(ctx, q, order, want)
	if err != nil {
		return nil, err
	}
	found := make([]content, 0, len(pages))
	for _, id := range order {
		if c, ok := pages[id]; ok {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b content) int { return a.at.Compare(b.at) })
	return found, nil
}

// lastOfRange returns the greatest possible end of a range that contains id.
func lastOfRange(id saga.ID) (last [16]byte) {
	n := millis(id) + rangeMillis
	for at := 5; at >= 0; at-- {
		last[at] = byte(n)
		n >>= 8
	}
	for at := 6; at < len(last); at++ {
		last[at] = 0xff
	}
	if n > 0 { // six bytes have no greater number
		for at := range 6 {
			last[at] = 0xff
		}
	}
	return last
}

// Messages returns the recorded attempts of some messages, for each in the order of time.
func (s *Store) Messages(ctx context.Context, q pg.Queryer, ids ...saga.ID) (map[saga.ID][]Entry, error) {
	pages, err := s.find(ctx, q, ids, messages(ids))
	if err != nil {
		return nil, err
	}
	found := make(map[saga.ID][]Entry, len(ids))
	for _, c := range pages {
		for _, e := range c.entries {
			found[e.Info.ID] = append(found[e.Info.ID], e)
		}
	}
	return found, nil
}

// The limits of Recent, in bytes.
const (
	mostOfPage   = 256 << 10
	mostOfRecent = 1 << 20 // reading more takes a page longer than 50 ms
)

// Recent returns the attempts in the newest pages, in the order of time. It leaves out pages of more than 256 KiB,
// pages of newer programs, and all pages beyond 1 MiB in total.
func (s *Store) Recent(ctx context.Context, q pg.Queryer, pages int) (all []Entry, err error) {
	rows, err := q.Query(ctx, s.sql.Get("recent"), pages, mostOfPage, mostOfRecent)
	if err != nil {
		return nil, fmt.Errorf("read the newest pages of the history: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		row := pg.CurrentRow(rows)
		c, err := decodePage(slices.Clone(row.Bytes(2)), wanted{all: true})
		if errors.Is(err, ErrNewer) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("page %s of the history: %w", saga.ID(row.UUID(0)), err)
		}
		c.name(row.UUID(0), row.Text(1), row.Time(3))
		all = append(all, c.entries...)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the newest pages of the history: %w", err)
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.At.Compare(b.At) })
	return all, nil
}

// messages returns a wanted with these messages.
func messages(ids []saga.ID) wanted {
	want := wanted{messages: make(map[saga.ID]bool, len(ids))}
	for _, id := range ids {
		want.messages[id] = true
	}
	return want
}

// Followed is the set of messages that followed from a message.
type Followed struct {
	Attempts []Entry   // in the order of time
	Unseen   []Message // sent, but without a recorded attempt: they wait, or are elsewhere
	More     bool      // there are more messages than requested
}

// Conversation returns the messages that followed from the message with this id, at most most.
func (s *Store) Conversation(ctx context.Context, q pg.Queryer, id saga.ID, most int) (f Followed, err error) {
	known := map[saga.ID]bool{id: true}
	sent := map[saga.ID]Message{}
	for level := []saga.ID{id}; len(level) > 0; {
		pages, err := s.find(ctx, q, level, messages(level))
		if err != nil {
			return Followed{}, err
		}
		level = nil
		for _, c := range pages {
			for _, e := range c.entries {
				f.Attempts = append(f.Attempts, e)
				delete(sent, e.Info.ID)
				for _, out := range e.Sent {
					if known[out.ID] {
						continue
					}
					if len(known) == most {
						f.More = true
						break
					}
					known[out.ID] = true
					sent[out.ID] = out
					level = append(level, out.ID)
				}
			}
		}
	}
	for _, out := range sent {
		f.Unseen = append(f.Unseen, out)
	}
	slices.SortFunc(f.Unseen, func(a, b Message) int { return a.ID.Compare(b.ID) })
	slices.SortStableFunc(f.Attempts, func(a, b Entry) int { return a.At.Compare(b.At) })
	return f, nil
}

// Life is one instance of a key, from its start to its end.
type Life struct {
	ID        saga.ID // of the instance
	Saga, Key string
	Began     time.Time // the time in the id, by the clock of the process
	Ended     time.Time // by the database's clock; zero while it lives
	Outcome   Outcome   // "" while it lives
	Page      saga.ID   // page of the last version
}

// Lives returns the lives of a key that have ended, the newest first, at most most.
func (s *Store) Lives(ctx context.Context, q pg.Queryer, name, key string, most int) ([]Life, error) {
	return s.lives(ctx, q, s.sql.Get("lives"), name, key, most)
}

// LifeOf returns the life of an instance that has ended; ok is false if the history has no such life.
func (s *Store) LifeOf(ctx context.Context, q pg.Queryer, id saga.ID) (life Life, ok bool, err error) {
	found, err := s.lives(ctx, q, s.sql.Get("life"), [16]byte(id))
	if err != nil || len(found) == 0 {
		return Life{}, false, err
	}
	return found[0], true, nil
}

// EndedOf selects the lives that Ended returns.
type EndedOf struct {
	Saga    string
	Outcome Outcome // "" is any
	Most    int
	Each    bool // one life of each saga, in the order of their names; only Most applies too

	// Before and BeforeID are the end and the id of the last life of the preceding page; zero starts with the newest.
	Before   time.Time
	BeforeID saga.ID
}

// Ended returns lives that have ended, the newest first.
func (s *Store) Ended(ctx context.Context, q pg.Queryer, of EndedOf) ([]Life, error) {
	if of.Each {
		return s.lives(ctx, q, s.sql.Get("each"), of.Most)
	}
	if of.Before.IsZero() {
		of.Before = time.Now().Add(100 * 365 * 24 * time.Hour)
	}
	return s.lives(ctx, q, s.sql.Get("ended"), of.Saga, string(of.Outcome), of.Before, [16]byte(of.BeforeID), of.Most)
}

// EndedSince counts the lives that have ended within a period, by saga, up to most for each.
func (s *Store) EndedSince(
	ctx context.Context, q pg.Queryer, sagas []string, period time.Duration, most int,
) (map[string]int64, error) {
	rows, err := q.Query(ctx, s.sql.Get("ended_since"), sagas, period.Microseconds(), most)
	if err != nil {
		return nil, fmt.Errorf("count lives in the history: %w", err)
	}
	counts := make(map[string]int64, len(sagas))
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var (
			name  string
			count int64
		)
		err = row.Scan(&name, &count)
		counts[name] = count
		return none, err
	})
	if err != nil {
		return nil, fmt.Errorf("count lives in the history: %w", err)
	}
	return counts, nil
}

func (s *Store) lives(ctx context.Context, q pg.Queryer, sql string, args ...any) ([]Life, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read lives from the history: %w", err)
	}
	lives, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Life, err error) {
		var id, page [16]byte
		err = row.Scan(&id, &l.Saga, &l.Key, &l.Ended, &l.Outcome, &page)
		l.ID, l.Page, l.Ended, l.Began = id, page, l.Ended.UTC(), time.UnixMilli(millis(id)).UTC()
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("read lives from the history: %w", err)
	}
	return lives, nil
}
