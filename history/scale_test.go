package history

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// scale is a history of many messages. Each instance gets a message in every page of its turn, so its timeline visits
// pages that are far apart.
type scale struct {
	*testing.B
	pool     *pgxpool.Pool
	schema   pg.Schema
	store    *Store
	messages int
	perPage  int

	last      map[saga.ID]saga.ID // the last page of some instances
	message   saga.ID
	root      saga.ID
	family    int
	instances []saga.ID
}

// messagesVariable names the variable with the number of messages for BenchmarkRead: 10,000,000 take some minutes.
const messagesVariable = "EDDA_HISTORY_MESSAGES"

// BenchmarkRead reads from a history of 100,000 messages, or the number in EDDA_HISTORY_MESSAGES, in pages of 500 and
// of 10, and rotates it while messages are written.
func BenchmarkRead(b *testing.B) {
	messages := 100_000
	if text := os.Getenv(messagesVariable); text != "" {
		var err error
		if messages, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for _, perPage := range []int{500, 10} {
		b.Run(fmt.Sprintf("pages of %d", perPage), func(b *testing.B) {
			pool, schema := pgtest.Database(b)
			s := &scale{B: b, pool: pool, schema: schema, store: New(schema), messages: messages, perPage: perPage,
				last: map[saga.ID]saga.ID{}}
			s.fill()
			b.Run("timeline", func(b *testing.B) {
				for b.Loop() {
					id := s.instances[b.N%len(s.instances)]
					got, _, err := s.store.Timeline(b.Context(), pool, id, s.last[id], 20)
					if err != nil || len(got) != 20 {
						b.Fatalf("%d versions, %v", len(got), err)
					}
				}
			})
			b.Run("message", func(b *testing.B) {
				for b.Loop() {
					if got, err := s.store.Messages(b.Context(), pool, s.message); err != nil || len(got) != 1 {
						b.Fatalf("%d attempts, %v", len(got), err)
					}
				}
			})
			b.Run("conversation", func(b *testing.B) {
				for b.Loop() {
					got, err := s.store.Conversation(b.Context(), pool, s.root, 1000)
					if err != nil || len(got.Attempts) != s.family {
						b.Fatalf("%d attempts, want %d: %v", len(got.Attempts), s.family, err)
					}
				}
			})
			b.Run("rotation", s.rotate)
		})
	}
}

const ofInstances = 1000

// fill copies pages into the tables: each page has messages of many instances, and at times one of a large
// conversation.
func (s *scale) fill() {
	s.Helper()
	k := Keeper{Store: s.store, Host: "bench/1"}
	var now atomic.Int64
	now.Store(noon.UnixMilli())
	serial := 0
	newID := func() (id saga.ID) {
		serial++
		id = at(now.Load()-noon.UnixMilli(), byte(serial))
		id[14], id[13], id[12], id[11] = byte(serial>>8), byte(serial>>16), byte(serial>>24), 1
		return id
	}
	for range ofInstances {
		s.instances = append(s.instances, newID())
	}
	pages := s.messages / s.perPage
	tree := newTree(newID)
	s.root, s.family = tree[0].Info.ID, len(tree)
	p := k.NewPage("orders", newID)
	var pageRows, rangeRows [][]any
	state := []byte(`{"total":100,"steps":12,"last":"0198c0de-0000-7000-8000-000000000001","padding":"........"}`)
	each := max(1, pages/(2*len(tree)))
	for n := range pages {
		now.Add(10)
		p.Begin(Options{Level: States, Sample: 1}, time.UnixMilli(now.Load()))
		if place := n / each; n%each == 0 && place < len(tree) {
			p.Add(&tree[place])
		}
		for i := range s.perPage {
			id := s.instances[(n*7+i)%len(s.instances)]
			change := p.AddChange(&Change{ID: id, Saga: "order", Key: "key", Version: int64(n), Kind: Changed,
				Previous: s.last[id], State: state})
			info := saga.Info{ID: newID(), Kind: "order.charge", Attempt: 1, Sent: time.UnixMilli(now.Load())}
			if n == pages/2 {
				s.message = info.ID
			}
			p.Add(&Attempt{Info: &info, Fate: Handled, Change: change,
				Sent: []saga.Outgoing{{To: "sink", Info: saga.Info{ID: newID(), Kind: "order.charged"}}}})
			s.last[id] = p.ID()
		}
		pageRows = append(pageRows, []any{0, [16]byte(p.ID()), "orders", p.count, append([]byte{}, p.out.buf...)})
		first, last := p.rangesOfIDs()
		for i := range first {
			rangeRows = append(rangeRows, []any{0, [16]byte(first[i]), [16]byte(last[i]), [16]byte(p.ID())})
		}
		if len(pageRows) == 2000 || n == pages-1 {
			s.copy("history", []string{"slot", "id", "endpoint", "messages", "page"}, pageRows)
			s.copy("history_range", []string{"slot", "first", "last", "page"}, rangeRows)
			pageRows, rangeRows = nil, nil
		}
	}
	pgtest.Exec(s, s.pool, "ANALYZE")
}

func (s *scale) copy(table string, columns []string, rows [][]any) {
	s.Helper()
	name := s.schema.Render(":schema")
	into := pgx.Identifier{name[1 : len(name)-1], table}
	if _, err := s.pool.CopyFrom(s.Context(), into, columns, pgx.CopyFromRows(rows)); err != nil {
		s.Fatal(err)
	}
}

// newTree returns a conversation of 100 messages: each of the first eleven sends nine.
func newTree(newID func() saga.ID) (tree []Attempt) {
	root := newID()
	info := func(id, cause saga.ID) *saga.Info {
		return &saga.Info{ID: id, Kind: "order.part", ConversationID: root, RelatedTo: cause, Attempt: 1}
	}
	tree = append(tree, Attempt{Info: info(root, saga.ID{}), Fate: Handled})
	for n := 0; len(tree) < 100; n++ {
		for range 9 {
			id := newID()
			tree[n].Sent = append(tree[n].Sent, saga.Outgoing{Info: saga.Info{ID: id, Kind: "order.part"}})
			tree = append(tree, Attempt{Info: info(id, tree[n].Info.ID), Fate: Handled})
		}
	}
	return tree
}

// rotate empties a full slot while a second session writes pages, and reports the longest write.
func (s *scale) rotate(b *testing.B) {
	ctx, stop := context.WithCancel(b.Context())
	var slowest atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			begun := time.Now()
			_, err := s.pool.Exec(context.WithoutCancel(ctx), s.schema.Render(`
				WITH slot AS (SELECT slot FROM :schema.ring WHERE name = 'history')
				INSERT INTO :schema.history (slot, id, endpoint, messages, page)
				SELECT slot, gen_random_uuid(), 'e', 1, 'x' FROM slot`))
			if err != nil {
				ended <- err
				return
			}
			slowest.Store(max(slowest.Load(), int64(time.Since(begun))))
		}
		ended <- nil
	}()
	for b.Loop() {
		for range 4 {
			pgtest.Exec(b, s.pool, s.schema.Render(
				`UPDATE :schema.ring SET since = '2000-01-01' WHERE name = 'history'`))
			tx, err := s.pool.Begin(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			var rotated bool
			if err := tx.QueryRow(b.Context(), s.schema.Render(`SELECT :schema.rotate_ring('history')`)).
				Scan(&rotated); err != nil || !rotated {
				b.Fatalf("rotated %v, %v", rotated, err)
			}
			if err := tx.Commit(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(slowest.Load())/1e6, "ms/slowest-write")
}
