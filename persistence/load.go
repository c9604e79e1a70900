package persistence

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

type pgconnTag = pgconn.CommandTag

// Ref names one instance to load: by ID if it is not zero, else by Saga and Key.
type Ref struct {
	Saga string
	Key  string
	ID   saga.ID
	Lock bool // lock the row until the transaction ends, without waiting
}

// Status is the result of a load.
type Status uint8

// The package comment describes the states.
const (
	Absent Status = iota
	Busy
	Loaded
)

func (s Status) String() string { return [...]string{"absent", "busy", "loaded"}[s] }

// Found is the result of a load for one Ref. If it is Busy, Instance has only its id, saga and key. Faulty is set if
// a column cannot be decoded; the instance is then Loaded without timeouts and originator.
type Found struct {
	Status   Status
	Instance saga.Instance
	Row      Row
	Faulty   error
}

// Row is the physical place of a loaded instance, for the Write that saves it.
type Row struct {
	tid    pg.TID
	Locked bool    // this transaction has locked the row: its save cannot lose
	Page   saga.ID // page of the history with the last recorded version, or zero
}

// columns is the number of columns of one instance in a loading statement.
const columns = 10

// Load loads refs in one round trip and returns the results in their order. Two refs may name one instance; the
// caller merges them by Instance.ID before the first step. Load never waits for a lock.
func (s *Store) Load(ctx context.Context, tx Sender, refs []Ref) ([]Found, error) {
	found := make([]Found, len(refs))
	byKey := [4]*pg.Array{pg.Ints(), pg.Texts(), pg.Texts(), pg.Ints()}
	byID := [3]*pg.Array{pg.Ints(), pg.UUIDs(), pg.Ints()}
	for n, ref := range refs {
		lock := 0
		if ref.Lock {
			lock = 1
		}
		if ref.ID.IsZero() {
			byKey[0].Int(n)
			byKey[1].Text(ref.Saga)
			byKey[2].Text(ref.Key)
			byKey[3].Int(lock)
		} else {
			byID[0].Int(n)
			byID[1].UUID(ref.ID)
			byID[2].Int(lock)
		}
	}
	collect := func(rows pgx.Rows) error { return collectFound(rows, refs, found) }
	b := &pgx.Batch{}
	if byKey[0].Len() > 0 {
		b.Queue(s.sql.Get("load_by_key"), byKey[0], byKey[1], byKey[2], byKey[3]).Query(collect)
	}
	if byID[0].Len() > 0 {
		b.Queue(s.sql.Get("load_by_id"), byID[0], byID[1], byID[2]).Query(collect)
	}
	if b.Len() == 0 {
		return found, nil
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("load %d saga instances: %w", len(refs), err)
	}
	return found, nil
}

func collectFound(rows pgx.Rows, refs []Ref, found []Found) error {
	for rows.Next() {
		r := pg.CurrentRow(rows)
		n := int(r.Int(0))
		locked, plain := r[1:1+columns], r[1+columns:]
		switch {
		case !locked.Null(0):
			found[n] = loaded(locked)
			found[n].Row.Locked = true
		case plain.Null(0):
			found[n].Status = Absent
		case refs[n].Lock:
			found[n] = Found{Status: Busy, Instance: saga.Instance{ID: plain.UUID(1), Saga: plain.Text(2),
				Key: plain.Text(3)}}
		default:
			found[n] = loaded(plain)
		}
	}
	return rows.Err()
}

func loaded(r pg.Row) Found {
	i, err := readInstance(r)
	return Found{Status: Loaded, Instance: i, Row: Row{tid: r.TID(0), Page: r.UUID(9)}, Faulty: err}
}
