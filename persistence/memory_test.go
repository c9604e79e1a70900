package persistence_test

import (
	"context"
	"errors"
	"testing"

	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

// memoryFixture is the store of sagatest. It has no transactions: a save takes effect at once.
func memoryFixture(*testing.T) fixture {
	store := sagatest.NewStore()
	return fixture{
		serial: true,
		begin:  func(context.Context) (storeTx, error) { return memoryTx{store}, nil },
		read: func(_ context.Context, name, key string) (saga.Instance, bool, error) {
			return store.Load(sagatest.Ref{Saga: name, Key: key})
		},
	}
}

type memoryTx struct{ store *sagatest.Store }

func (m memoryTx) Load(_ context.Context, refs []persistence.Ref) ([]persistence.Found, error) {
	found := make([]persistence.Found, len(refs))
	for n, ref := range refs {
		i, ok, err := m.store.Load(sagatest.Ref{Saga: ref.Saga, Key: ref.Key, ID: ref.ID})
		if err != nil {
			return nil, err
		}
		if ok {
			found[n] = persistence.Found{Status: persistence.Loaded, Instance: i}
		}
	}
	return found, nil
}

func (m memoryTx) Save(_ context.Context, writes []persistence.Write) ([]bool, error) {
	ops := map[persistence.Op]sagatest.Op{
		persistence.Check: sagatest.Check, persistence.Update: sagatest.Update, persistence.Complete: sagatest.Complete,
		persistence.Start: sagatest.Start, persistence.StartAndComplete: sagatest.StartAndComplete,
	}
	var same []sagatest.Write
	for _, w := range writes {
		same = append(same, sagatest.Write{Op: ops[w.Op], Instance: w.Instance})
	}
	return m.store.Save(same)
}

func (m memoryTx) Commit(context.Context) error { return nil }

func (m memoryTx) Rollback(context.Context) error {
	return errors.New("the store in memory cannot roll back")
}
