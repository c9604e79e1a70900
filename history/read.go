package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Queryer is a pool, a connection or a transaction of pgx.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// pages reads pages by their ids. A page that is not there any more is left out.
func (s *Store) pages(ctx context.Context, q Queryer, ids []saga.ID) (map[saga.ID]content, error) {
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
			c, err := decodePage(slices.Clone(row.Bytes(2)))
			if err != nil {
				rows.Close()
				return nil, fmt.Errorf("page %s of the history: %w", id, err)
			}
			c.name(id, row.Text(1))
			found[id] = c
		}
		if err := rows.Err(); err != nil {
			return nil, fmt.Errorf("read pages of the history: %w", err)
		}
	}
	return found, nil
}

const pagesAtOnce = 50

// name gives the entries and versions of a page the names that its row has, and entries those of their instances.
func (c *content) name(id saga.ID, endpoint string) {
	for n := range c.entries {
		e := &c.entries[n]
		e.Page, e.Endpoint = id, endpoint
		if of := c.of[n]; of > 0 {
			e.Saga, e.Key = c.versions[of-1].Saga, c.versions[of-1].Key
		}
	}
	for n := range c.versions {
		c.versions[n].Page, c.versions[n].At = id, c.at
	}
}

// mostOfOne is how many pages are read for one id.
const mostOfOne = 200

// find returns the pages that may tell of the ids, in the order of time. Of one id the newest mostOfOne are read.
func (s *Store) find(ctx context.Context, q Queryer, ids []saga.ID) ([]content, error) {
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
	pages, err := s.pages(ctx, q, order)
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

// lastOfRange is the greatest id at which a range may end that has id in it.
func lastOfRange(id saga.ID) (last [16]byte) {
	n := millis(id) + rangeMillis
	for at := 5; at >= 0; at-- {
		last[at] = byte(n)
		n >>= 8
	}
	for at := 6; at < len(last); at++ {
		last[at] = 0xff
	}
	if n > 0 { // there is no greater number of six bytes
		for at := range 6 {
			last[at] = 0xff
		}
	}
	return last
}

// Message returns the attempts of a message that history has, in the order of time.
func (s *Store) Message(ctx context.Context, q Queryer, id saga.ID) ([]Entry, error) {
	pages, err := s.find(ctx, q, []saga.ID{id})
	if err != nil {
		return nil, err
	}
	var attempts []Entry
	for _, c := range pages {
		for _, e := range c.entries {
			if e.Info.ID == id {
				attempts = append(attempts, e)
			}
		}
	}
	return attempts, nil
}

// Conversation returns the attempts of the messages that followed from one message, that of the id, in the order of
// time, and the messages that were sent among them of which history has no attempt: they wait, or are elsewhere. more
// reports that there are more than most messages.
func (s *Store) Conversation(
	ctx context.Context, q Queryer, id saga.ID, most int,
) (attempts []Entry, unseen []Message, more bool, err error) {
	known := map[saga.ID]bool{id: true}
	sent := map[saga.ID]Message{}
	for level := []saga.ID{id}; len(level) > 0; {
		pages, err := s.find(ctx, q, level)
		if err != nil {
			return nil, nil, false, err
		}
		wanted := make(map[saga.ID]bool, len(level))
		for _, id := range level {
			wanted[id] = true
		}
		level = nil
		for _, c := range pages {
			for _, e := range c.entries {
				if !wanted[e.Info.ID] {
					continue
				}
				attempts = append(attempts, e)
				delete(sent, e.Info.ID)
				for _, out := range e.Sent {
					if known[out.ID] {
						continue
					}
					if len(known) == most {
						more = true
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
		unseen = append(unseen, out)
	}
	slices.SortFunc(unseen, func(a, b Message) int { return a.ID.Compare(b.ID) })
	slices.SortStableFunc(attempts, func(a, b Entry) int { return a.At.Compare(b.At) })
	return attempts, unseen, more, nil
}

// Life is one life of a key: from a start to its end.
type Life struct {
	ID        saga.ID // of the instance
	Saga, Key string
	Began     time.Time // the time in the id, by the clock of the process
	Ended     time.Time // by the database's clock; zero while it lives
	Outcome   Outcome   // "" while it lives
	Page      saga.ID   // that tells of the last version
}

// Lives returns the lives of a key that have ended, the newest first, most of them at most.
func (s *Store) Lives(ctx context.Context, q Queryer, name, key string, most int) ([]Life, error) {
	return s.lives(ctx, q, s.sql.Get("lives"), name, key, most)
}

// LifeOf returns the life of an instance that has ended; ok is false if history knows of none.
func (s *Store) LifeOf(ctx context.Context, q Queryer, id saga.ID) (life Life, ok bool, err error) {
	found, err := s.lives(ctx, q, s.sql.Get("life"), [16]byte(id))
	if err != nil || len(found) == 0 {
		return Life{}, false, err
	}
	return found[0], true, nil
}

// EndedBefore names the place in a list of ended lives from which to go on. The zero value is the beginning.
type EndedBefore struct {
	Ended time.Time
	ID    saga.ID
}

// Ended returns lives of a saga that have ended, the newest first, of one outcome or of all if that is "".
func (s *Store) Ended(
	ctx context.Context, q Queryer, name string, outcome Outcome, before EndedBefore, most int,
) ([]Life, error) {
	if before.Ended.IsZero() {
		before = EndedBefore{Ended: time.Now().Add(100 * 365 * 24 * time.Hour), ID: saga.ID{}}
	}
	return s.lives(ctx, q, s.sql.Get("ended"), name, string(outcome), before.Ended, [16]byte(before.ID), most)
}

func (s *Store) lives(ctx context.Context, q Queryer, sql string, args ...any) ([]Life, error) {
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
