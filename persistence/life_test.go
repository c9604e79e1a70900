package persistence_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
)

// lifeCases hold for every store, with and without open transactions.
var lifeCases = []conformCase{
	{"AbsentIsAbsent", absentIsAbsent},
	{"OneInstanceByKeyAndByID", oneInstanceByKeyAndByID},
	{"VersionsHaveNoGaps", versionsHaveNoGaps},
	{"StateBytesAreKept", stateBytesAreKept},
	{"PendingAndOriginatorComeBack", pendingAndOriginatorComeBack},
	{"LivingKeyIsNotStartedAgain", livingKeyIsNotStartedAgain},
	{"TwoStartsOfAKeyInOneBatch", twoStartsOfAKeyInOneBatch},
	{"StartAndCompleteBesideALivingInstanceLoses", startAndCompleteBesideALivingInstance},
	{"StartAndCompleteLeavesNothing", startAndCompleteLeavesNothing},
	{"CompleteThenStartNeedsTwoBatches", completeThenStartNeedsTwoBatches},
	{"OldVersionDoesNotHitNewLife", oldVersionDoesNotHitNewLife},
	{"SilentStepOnStaleStateLoses", silentStepOnStaleStateLoses},
	{"UpdateRaceHasOneWinner", updateRaceHasOneWinner},
	{"CompleteAndUpdateHaveOneWinner", completeAndUpdateHaveOneWinner},
	{"BulkOf500", bulkOf500},
	{"MixedBatch", mixedBatch},
	{"NothingIsNothing", nothingIsNothing},
}

func absentIsAbsent(s scene) {
	a := s.begin()
	for n, f := range a.load(key("7"), byID(saga.ID{7}), persistence.Ref{Saga: "invoice", Key: "7"}) {
		if f.Status != persistence.Absent {
			s.Errorf("ref %d is %v, want absent", n, f.Status)
		}
	}
	a.commit()
}

func oneInstanceByKeyAndByID(s scene) {
	i := order("7", 1)
	s.won("start", s.then(start(i)), true)
	a := s.begin()
	found := a.load(byID(i.ID), key("7"), key("7"), key("8"))
	i.Version = 1
	for n, f := range found[:3] {
		if f.Status != persistence.Loaded {
			s.Fatalf("ref %d is %v, want loaded", n, f.Status)
		}
		if diff := cmp.Diff(i, f.Instance); diff != "" {
			s.Errorf("ref %d (-want +got):\n%s", n, diff)
		}
	}
	if found[3].Status != persistence.Absent {
		s.Errorf("another key is %v, want absent", found[3].Status)
	}
	s.won("update", a.save(write(persistence.Update, found[1])), true)
	a.commit()
	s.want("7", 2)
}

func versionsHaveNoGaps(s scene) {
	s.won("start", s.then(start(order("7", 1))), true)
	for version := int64(1); version <= 5; version++ {
		a := s.begin()
		f := a.get(key("7"))
		if f.Instance.Version != version {
			s.Fatalf("loaded version %d, want %d", f.Instance.Version, version)
		}
		s.won("check", a.save(write(persistence.Check, f)), true)
		a.commit()
		s.want("7", version)
		a = s.begin()
		s.won("update", a.save(write(persistence.Update, a.get(key("7")))), true)
		a.commit()
	}
	s.want("7", 6)
}

// States that jsonb would rewrite or refuse.
var awkwardStates = []string{
	`{"a":"\u0000"}`, `{"a":"\ud800"}`, `{"n":9007199254740993,"p":1.10,"n":2,"N":3,"z":1,"a":2}`,
	" { \"a\" :\t1 }\n", `{"n":1e131072}`, `{"a":"\u202e\u001b[31m"}`, `{"ä":"😀"}`, `null`, `[]`, `"x"`,
	`{"a":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`,
	`{"a":"` + strings.Repeat("x", persistence.MaxState-8) + `"}`,
}

func stateBytesAreKept(s scene) {
	for n, state := range awkwardStates {
		k := fmt.Sprint(n)
		i := order(k, n+1)
		i.State = []byte(state)
		s.won("start", s.then(start(i)), true)
		if got := s.want(k, 1); string(got.State) != state {
			s.Errorf("state after the start: %.80q, want %.80q", got.State, state)
		}
		a := s.begin()
		f := a.get(key(k))
		next := awkwardStates[(n+1)%len(awkwardStates)]
		f.Instance.State, f.Instance.StateVersion = []byte(next), 3
		s.won("update", a.save(write(persistence.Update, f)), true)
		a.commit()
		if got := s.want(k, 2); string(got.State) != next || got.StateVersion != 3 {
			s.Errorf("state after the update: version %d %.80q, want version 3 %.80q", got.StateVersion, got.State,
				next)
		}
	}
}

func pendingAndOriginatorComeBack(s scene) {
	i := order("7", 1)
	i.Originator = saga.Originator{Endpoint: "web", MessageID: saga.ID{1}, Instance: saga.ID{2},
		Correlation: saga.ID{3}}
	i.Pending = []saga.Pending{
		{Name: "payment", Kind: "payment.overdue", Due: time.Date(2024, 2, 29, 23, 59, 59, 999999000, time.UTC),
			ID: saga.ID{4}},
		{Kind: "remorse.over", Due: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), ID: saga.ID{5}},
	}
	s.won("start", s.then(start(i)), true)
	for _, pending := range [][]saga.Pending{i.Pending, i.Pending[:1], nil, i.Pending} {
		a := s.begin()
		f := a.get(key("7"))
		f.Instance.Pending = pending
		s.won("update", a.save(write(persistence.Update, f)), true)
		a.commit()
		got := s.want("7", f.Instance.Version+1)
		if diff := cmp.Diff(pending, got.Pending); diff != "" {
			s.Errorf("pending (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(i.Originator, got.Originator); diff != "" {
			s.Errorf("originator (-want +got):\n%s", diff)
		}
	}
}

func livingKeyIsNotStartedAgain(s scene) {
	s.won("start", s.then(start(order("7", 1))), true)
	s.won("start again, beside another key", s.then(start(order("7", 2)), start(order("8", 3))), false, true)
	if i := s.want("7", 1); string(i.State) != `{"n":1}` {
		s.Errorf("order/7 has the state %s of the second start", i.State)
	}
	other := order("7", 4)
	other.Saga = "invoice"
	s.won("the same key of another saga", s.then(start(other)), true)
}

func twoStartsOfAKeyInOneBatch(s scene) {
	won := s.then(start(order("7", 1)), start(order("7", 2)))
	if won[0] == won[1] {
		s.Errorf("two starts of a key in one batch: won %v, want one", won)
	}
	s.want("7", 1)
}

func startAndCompleteBesideALivingInstance(s scene) {
	s.won("start", s.then(start(order("7", 1))), true)
	s.won("start and complete", s.then(startAndComplete(order("7", 2))), false)
	s.want("7", 1)
}

func startAndCompleteLeavesNothing(s scene) {
	s.won("start and complete", s.then(startAndComplete(order("7", 1)), start(order("8", 2))), true, true)
	s.want("7", 0)
	s.want("8", 1)
	s.won("start", s.then(start(order("7", 3))), true)
}

func completeThenStartNeedsTwoBatches(s scene) {
	s.won("start", s.then(start(order("7", 1))), true)
	a := s.begin()
	s.won("complete and start in one batch",
		a.save(write(persistence.Complete, a.get(key("7"))), start(order("7", 2))), true, false)
	a.commit()
	s.want("7", 0)
	s.won("start in the next", s.then(start(order("7", 2))), true)
	s.want("7", 1)
}

// A key may start again, with the same version: only the id distinguishes the two instances.
func oldVersionDoesNotHitNewLife(s scene) {
	for _, op := range []persistence.Op{persistence.Check, persistence.Update, persistence.Complete} {
		k := fmt.Sprint("key of ", op)
		s.won("start", s.then(start(order(k, int(op)+1))), true)
		old := s.released(key(k))
		complete := s.begin()
		s.won("complete", complete.save(write(persistence.Complete, complete.get(key(k)))), true)
		complete.commit()
		s.won("start anew", s.then(start(order(k, int(op)+11))), true)
		s.won("save the old life", s.then(write(op, old)), false)
		if i := s.want(k, 1); string(i.State) != fmt.Sprintf(`{"n":%d}`, op+11) {
			s.Errorf("the new life has state %s", i.State)
		}
	}
}

// released loads an instance without its lock, in a transaction that has ended.
func (s scene) released(ref persistence.Ref) persistence.Found {
	s.Helper()
	a := s.begin()
	found, err := a.tx.Load(a.Context(), []persistence.Ref{ref})
	if err != nil || found[0].Status != persistence.Loaded {
		s.Fatalf("load %+v: %v, %v", ref, found, err)
	}
	a.commit()
	return found[0]
}

// A step that changes nothing has still decided on the basis of the state that it read.
func silentStepOnStaleStateLoses(s scene) {
	s.won("start", s.then(start(order("7", 1))), true)
	old := s.released(key("7"))
	a := s.begin()
	s.won("update", a.save(write(persistence.Update, a.get(key("7")))), true)
	a.commit()
	s.won("check of the old state", s.then(write(persistence.Check, old)), false)
	s.want("7", 2)
}

func updateRaceHasOneWinner(s scene) {
	s.won("start", s.then(start(order("7", 1))), true)
	one, two := s.released(key("7")), s.released(key("7"))
	s.won("first", s.then(write(persistence.Update, one)), true)
	s.won("second", s.then(write(persistence.Update, two)), false)
	s.want("7", 2)
}

func completeAndUpdateHaveOneWinner(s scene) {
	s.won("start", s.then(start(order("7", 1)), start(order("8", 2))), true, true)
	seven, eight := s.released(key("7")), s.released(key("8"))
	s.won("complete 7, update 8", s.then(write(persistence.Complete, seven), write(persistence.Update, eight)), true,
		true)
	s.won("update 7, complete 8", s.then(write(persistence.Update, seven), write(persistence.Complete, eight)), false,
		false)
	s.want("7", 0)
	s.want("8", 2)
}

func bulkOf500(s scene) {
	const many = 500
	var writes []persistence.Write
	var refs []persistence.Ref
	for n := range many {
		i := order(fmt.Sprint(n*7919%many), n+1)
		writes = append(writes, start(i))
		refs = append(refs, key(i.Key))
	}
	s.allWon("start", s.then(writes...), many)
	for _, op := range []persistence.Op{persistence.Check, persistence.Update, persistence.Complete} {
		a := s.begin()
		writes = writes[:0]
		for n, f := range a.load(refs...) {
			if f.Status != persistence.Loaded || f.Instance.Key != refs[n].Key {
				s.Fatalf("ref %d: %v %s", n, f.Status, f.Instance.Key)
			}
			writes = append(writes, write(op, f))
		}
		s.allWon(fmt.Sprint("op ", op), a.save(writes...), many)
		a.commit()
	}
	s.want("0", 0)
}

func (s scene) allWon(story string, won []bool, want int) {
	s.Helper()
	n := 0
	for _, w := range won {
		if w {
			n++
		}
	}
	if n != want {
		s.Fatalf("%s: %d won, want %d", story, n, want)
	}
}

func mixedBatch(s scene) {
	s.won("start", s.then(start(order("a", 1)), start(order("b", 2)), start(order("c", 3)), start(order("d", 4))), true,
		true, true, true)
	moved := s.released(key("d"))
	s.won("move d", s.then(write(persistence.Update, moved)), true)
	a := s.begin()
	f := a.load(key("a"), key("b"), key("c"))
	s.won("mixed", a.save(write(persistence.Update, f[0]), start(order("e", 5)), write(persistence.Update, moved),
		write(persistence.Complete, f[1]), startAndComplete(order("f", 6)), write(persistence.Check, f[2]),
		start(order("c", 7))), true, true, false, true, true, true, false)
	a.commit()
	for k, version := range map[string]int64{"a": 2, "b": 0, "c": 1, "d": 2, "e": 1, "f": 0} {
		s.want(k, version)
	}
}

func nothingIsNothing(s scene) {
	a := s.begin()
	if found, won := a.load(), a.save(); len(found) != 0 || len(won) != 0 {
		s.Errorf("load and save of nothing: %v, %v", found, won)
	}
	a.commit()
}
