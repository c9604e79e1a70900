package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// locked is how a peer reaches the instance of one message in its own transaction, and how it sends.
type locked struct {
	load func(key string, iid *uuid.UUID, state *[]byte) error // with the row locked
	save func(iid uuid.UUID, state []byte) error
	send func(Charged) error
}

// step is the saga step of the peers that are libraries for one message at a time.
func (l locked) step(m Charge) error {
	var iid uuid.UUID
	var state []byte
	if err := l.load(m.Order, &iid, &state); err != nil {
		return fmt.Errorf("load %s: %w", m.Order, err)
	}
	var order Order
	if err := json.Unmarshal(state, &order); err != nil {
		return err
	}
	charged := order.Apply(m)
	state, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if err := l.save(iid, state); err != nil {
		return fmt.Errorf("save %s: %w", m.Order, err)
	}
	return l.send(charged)
}

// lockedIn reaches the instance through a transaction of pgx.
func lockedIn(ctx context.Context, tx pgx.Tx, sql map[string]string, send func(Charged) error) locked {
	return locked{
		load: func(key string, iid *uuid.UUID, state *[]byte) error {
			return tx.QueryRow(ctx, sql["load"], key).Scan(iid, state)
		},
		save: func(iid uuid.UUID, state []byte) error {
			_, err := tx.Exec(ctx, sql["save"], iid, state)
			return err
		},
		send: send,
	}
}
