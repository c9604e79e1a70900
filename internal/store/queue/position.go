package queue

import (
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgtype"
)

// Position is a place in a queue's order. The zero Position is before everything.
type Position struct {
	Due time.Time
	ID  saga.ID
}

// After reports whether p comes after q.
func (p Position) After(q Position) bool {
	if c := p.Due.Compare(q.Due); c != 0 {
		return c > 0
	}
	return string(p.ID[:]) > string(q.ID[:])
}

// Before returns the place directly before p.
func (p Position) Before() Position {
	for i := len(p.ID) - 1; i >= 0; i-- {
		p.ID[i]--
		if p.ID[i] != 0xff {
			return p
		}
	}
	return Position{Due: p.Due.Add(-time.Microsecond), ID: p.ID}
}

// DueParam returns Due as the parameter of a statement that reads behind p.
func (p Position) DueParam() pgtype.Timestamptz {
	if p == (Position{}) {
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	return pgtype.Timestamptz{Time: p.Due, Valid: true}
}

// PositionOf reads the place of the current row of a statement that returns messages.
func PositionOf(row pg.Row) Position { return Position{Due: row.Time(0), ID: row.UUID(1)} }
