package limit

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"slices"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed statements.sql
var statements string

// ErrNoLimit means that no limit of that name exists.
var ErrNoLimit = errors.New("there is no such limit")

// CallPrefix begins the payload of a notification that slots are free or a limit has changed. The limit's name follows.
const CallPrefix = "limit:"

// NamedPrefix begins the names of the limits that programs define for work of their own. The others belong to
// endpoints.
const NamedPrefix = "named/"

// Most is the largest limit. A grant reads every slot of its limit.
const Most = 10_000

// Slot is the time of one holder with a slot.
type Slot struct {
	Name   string // of the limit
	No     int
	Holder string
	Epoch  int64 // grows with each grant of this slot: a fencing number
}

// Store grants the slots of one schema. It holds no state and is safe for concurrent use.
type Store struct {
	sql     pg.Statements
	channel string
}

// New renders the statements for schema.
func New(schema pg.Schema) *Store {
	return &Store{sql: pg.Load(statements, schema), channel: schema.Channel()}
}

// Sender is implemented by pgx's pools, connections and transactions.
type Sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// DB is implemented by pgx's pools, connections and transactions.
type DB interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Execer is implemented by pgx's pools, connections and transactions.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// columns are slots as parameters of the statements, in the order in which the statements wait for their locks, with
// their original indexes.
type columns struct {
	name   []string
	no     []int32
	holder []string
	epoch  []int64
	at     []int
}

func inOrder(slots []Slot) columns {
	c := columns{at: make([]int, len(slots))}
	for n := range slots {
		c.at[n] = n
	}
	slices.SortFunc(c.at, func(a, b int) int {
		return cmp.Or(cmp.Compare(slots[a].Name, slots[b].Name), cmp.Compare(slots[a].No, slots[b].No))
	})
	for _, n := range c.at {
		s := slots[n]
		c.name, c.no = append(c.name, s.Name), append(c.no, int32(s.No))
		c.holder, c.epoch = append(c.holder, s.Holder), append(c.epoch, s.Epoch)
	}
	return c
}
