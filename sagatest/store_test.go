package sagatest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

func write(op sagatest.Op, id byte, key string, version int64) sagatest.Write {
	return sagatest.Write{Op: op, Instance: saga.Instance{
		ID: saga.ID{15: id}, Saga: "s", Key: key, Version: version, StateVersion: 1, State: []byte(`{}`),
		Pending: []saga.Pending{{Name: "n", Kind: "k", Due: time.Unix(1, 0).UTC(), ID: saga.ID{15: 99}}},
	}}
}

func TestStoreComparesIDAndVersion(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name   string
		writes []sagatest.Write
		won    []bool
	}{
		{"start", []sagatest.Write{write(sagatest.Start, 1, "a", 0)}, []bool{true}},
		{"the key is taken", []sagatest.Write{write(sagatest.Start, 2, "a", 0)}, []bool{false}},
		{"two starts of a key", []sagatest.Write{write(sagatest.Start, 3, "b", 0), write(sagatest.Start, 4, "b", 0)},
			[]bool{true, false}},
		{"update raises the version", []sagatest.Write{write(sagatest.Update, 1, "a", 1)}, []bool{true}},
		{"an old version loses", []sagatest.Write{write(sagatest.Update, 1, "a", 1), write(sagatest.Check, 1, "a", 1)},
			[]bool{false, false}},
		{"a check that holds", []sagatest.Write{write(sagatest.Check, 1, "a", 2)}, []bool{true}},
		{"complete and start of a key in one batch",
			[]sagatest.Write{write(sagatest.Complete, 1, "a", 2), write(sagatest.Start, 5, "a", 0)},
			[]bool{true, false}},
		{"the key lives again", []sagatest.Write{write(sagatest.Start, 5, "a", 0)}, []bool{true}},
		{"the old life's version is no version of the new", []sagatest.Write{write(sagatest.Update, 1, "a", 1)},
			[]bool{false}},
		{"start and complete of a living key", []sagatest.Write{write(sagatest.StartAndComplete, 6, "a", 0)},
			[]bool{false}},
		{"start and complete", []sagatest.Write{write(sagatest.StartAndComplete, 7, "c", 0)}, []bool{true}},
		{"and the key is free", []sagatest.Write{write(sagatest.Start, 8, "c", 0)}, []bool{true}},
	}
	s := sagatest.NewStore()
	for _, step := range steps {
		won, err := s.Save(step.writes)
		if err != nil || !slices.Equal(won, step.won) {
			t.Fatalf("%s: won %v, %v, want %v", step.name, won, err, step.won)
		}
	}
	i, ok, err := s.Load(sagatest.Ref{Saga: "s", ID: saga.ID{15: 5}})
	if err != nil || !ok || i.Version != 1 || i.Key != "a" || i.Pending[0].Name != "n" {
		t.Errorf("load: %+v, %v, %v", i, ok, err)
	}
	if _, ok, _ := s.Load(sagatest.Ref{Saga: "other", ID: saga.ID{15: 5}}); ok {
		t.Error("an instance was found by another saga")
	}
	i.State[0] = 'x'
	if again, _, _ := s.Load(sagatest.Ref{Saga: "s", Key: "a"}); string(again.State) != `{}` {
		t.Error("what was loaded is the store's own memory")
	}
}
