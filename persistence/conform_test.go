package persistence_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// fixture is an empty store for the conformance suite.
type fixture struct {
	begin   func(ctx context.Context) (storeTx, error)
	read    func(ctx context.Context, name, key string) (saga.Instance, bool, error)
	blocked func(t *testing.T, tx storeTx) // returns when the transaction waits for a lock
	lock    bool                           // loads lock the instances
	serial  bool                           // there are no open transactions: a save takes effect at once
}

type storeTx interface {
	Load(ctx context.Context, refs []persistence.Ref) ([]persistence.Found, error)
	Save(ctx context.Context, writes []persistence.Write) ([]bool, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// conform runs every store through one suite. The name of a case is the fault that it would find.
func conform(t *testing.T, open func(*testing.T) fixture) {
	cases := lifeCases
	if !open(t).serial {
		cases = slices.Concat(lifeCases, raceCases, crowdCases)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(scene{t, open(t)})
		})
	}
}

type conformCase struct {
	name string
	run  func(scene)
}

// scene is a case on its store. An error ends the case.
type scene struct {
	*testing.T
	store fixture
}

// act is one transaction of a scene.
type act struct {
	scene
	tx storeTx
}

func (s scene) begin() act {
	s.Helper()
	tx, err := s.store.begin(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(s.Context())) }) // of a case that failed
	return act{s, tx}
}

// then saves writes in one transaction.
func (s scene) then(writes ...persistence.Write) []bool {
	s.Helper()
	a := s.begin()
	won := a.save(writes...)
	a.commit()
	return won
}

// load loads as the store under test does: with a lock or without.
func (a act) load(refs ...persistence.Ref) []persistence.Found {
	a.Helper()
	for n := range refs {
		refs[n].Lock = a.store.lock
	}
	found, err := a.tx.Load(a.Context(), refs)
	if err != nil {
		a.Fatal(err)
	}
	return found
}

// get loads an instance that must exist.
func (a act) get(ref persistence.Ref) persistence.Found {
	a.Helper()
	found := a.load(ref)[0]
	if found.Status != persistence.Loaded || found.Faulty != nil {
		a.Fatalf("load %+v: %v, %v; want it loaded", ref, found.Status, found.Faulty)
	}
	return found
}

func (a act) save(writes ...persistence.Write) []bool {
	a.Helper()
	won, err := a.tx.Save(a.Context(), writes)
	if err != nil {
		a.Fatal(err)
	}
	return won
}

func (a act) commit() {
	a.Helper()
	if err := a.tx.Commit(a.Context()); err != nil {
		a.Fatal(err)
	}
}

func (a act) rollback() {
	a.Helper()
	if err := a.tx.Rollback(a.Context()); err != nil {
		a.Fatal(err)
	}
}

func (s scene) won(story string, got []bool, want ...bool) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Fatalf("%s: won %v, want %v", story, got, want)
	}
}

// want checks the live instance of a key: its version, or 0 if there must be no instance.
func (s scene) want(key string, version int64) saga.Instance {
	s.Helper()
	i, ok, err := s.store.read(s.Context(), "order", key)
	if err != nil {
		s.Fatal(err)
	}
	if ok != (version > 0) || i.Version != version {
		s.Fatalf("order/%s has version %d (alive: %t), want %d", key, i.Version, ok, version)
	}
	return i
}

func key(key string) persistence.Ref  { return persistence.Ref{Saga: "order", Key: key} }
func byID(id saga.ID) persistence.Ref { return persistence.Ref{Saga: "order", ID: id} }

// order returns an instance that has not been stored. n determines its id.
func order(key string, n int) saga.Instance {
	return saga.Instance{
		ID:   saga.ID{byte(n >> 8), byte(n), 15: 1},
		Saga: "order", Key: key, StateVersion: 1, State: fmt.Appendf(nil, `{"n":%d}`, n),
	}
}

func start(i saga.Instance) persistence.Write {
	return persistence.Write{Op: persistence.Start, Instance: i}
}

func startAndComplete(i saga.Instance) persistence.Write {
	return persistence.Write{Op: persistence.StartAndComplete, Instance: i}
}

// write saves the loaded instance f.
func write(op persistence.Op, f persistence.Found) persistence.Write {
	return persistence.Write{Op: op, Instance: f.Instance, Row: f.Row}
}
