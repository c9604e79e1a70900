package persistence_test

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/persistence"
)

// raceCases hold for stores with transactions, while some transactions are open.
var raceCases = []conformCase{
	{"RolledBackBatchLeavesNothing", rolledBackBatchLeavesNothing},
	{"SkippedInstanceIsNotMissing", skippedInstanceIsNotMissing},
	{"UncommittedStartIsAbsent", uncommittedStartIsAbsent},
	{"SecondStartWaitsForTheFirst", secondStartWaitsForTheFirst},
	{"StartWaitsForAnUncommittedComplete", startWaitsForAnUncommittedComplete},
	{"SaveNeverWaits", saveNeverWaits},
	{"LoadedByTwoHasOneWinner", loadedByTwoHasOneWinner},
	{"StateOfALoadIsTheNewest", stateOfALoadIsTheNewest},
}

// atOnce runs statements that must return while other transactions stay open. Those do not end before the case does,
// so a statement that waits fails with the deadline.
func (s scene) atOnce(story string, do func(ctx context.Context) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), pgdev.Patience(20*time.Second))
	defer cancel()
	if err := do(ctx); err != nil {
		s.Fatalf("%s: %v", story, err)
	}
}

func rolledBackBatchLeavesNothing(s scene) {
	s.won("start", s.then(start(order("7", 1)), start(order("8", 2))), true, true)
	a := s.begin()
	f := a.load(key("7"), key("8"))
	s.won("mixed", a.save(write(persistence.Update, f[0]), write(persistence.Complete, f[1]), start(order("9", 3))),
		true, true, true)
	a.rollback()
	s.want("7", 1)
	s.want("8", 1)
	s.want("9", 0)
}

// A locked row and a missing row give the same result with SKIP LOCKED. A message whose instance is busy must not be
// treated like a message without an instance.
func skippedInstanceIsNotMissing(s scene) {
	s.won("start", s.then(start(order("7", 1)), start(order("8", 2)), start(order("9", 3))), true, true, true)
	holder := s.begin()
	f := holder.load(key("7"), key("8"), key("9"))
	s.won("held in three ways", holder.save(write(persistence.Check, f[0]), write(persistence.Update, f[1]),
		write(persistence.Complete, f[2])), true, true, true)
	refs := []persistence.Ref{key("7"), key("8"), key("9"), byID(order("7", 1).ID), byID(order("8", 2).ID),
		byID(order("9", 3).ID)}
	for _, lock := range []bool{true, false} {
		other := s.begin()
		want := persistence.Loaded
		for n := range refs {
			if refs[n].Lock = lock; lock {
				want = persistence.Busy
			}
		}
		s.atOnce("load what is held", func(ctx context.Context) error {
			found, err := other.tx.Load(ctx, refs)
			for n := range found {
				if f := found[n]; f.Status != want || f.Instance.ID != order("", n%3+1).ID ||
					f.Instance.Key != fmt.Sprint(7+n%3) {
					s.Errorf("ref %d with lock %t: %v %s, want %v", n, lock, f.Status, f.Instance.Key, want)
				} else if lock && f.Instance.State != nil {
					s.Errorf("ref %d is busy and has a state: %s", n, f.Instance.State)
				}
			}
			return err
		})
		other.commit()
	}
	holder.rollback()
	s.want("9", 1)
}

func uncommittedStartIsAbsent(s scene) {
	first := s.begin()
	s.won("start", first.save(start(order("7", 1))), true)
	other := s.begin()
	s.atOnce("load an uncommitted start", func(ctx context.Context) error {
		found, err := other.tx.Load(ctx, []persistence.Ref{{Saga: "order", Key: "7", Lock: s.store.lock},
			byID(order("7", 1).ID)})
		for n, f := range found {
			if f.Status != persistence.Absent {
				s.Errorf("ref %d is %v, want absent", n, f.Status)
			}
		}
		return err
	})
	other.commit()
	first.commit()
	s.want("7", 1)
}

func secondStartWaitsForTheFirst(s scene) {
	for n, end := range []string{"commit", "rollback", "complete"} {
		first, second := s.begin(), s.begin()
		i, rival := order(end, 2*n+1), order(end, 2*n+2)
		s.won("first", first.save(start(i)), true)
		result := second.saveAside(start(rival))
		s.store.blocked(s.T, second.tx)
		want := true
		switch end {
		case "commit":
			want = false
			first.commit()
		case "rollback":
			first.rollback()
		case "complete": // in the transaction that started it
			i.Version = 1
			s.won("complete", first.save(write(persistence.Complete, first.get(key(end)))), true)
			first.commit()
		}
		s.won("second, after "+end, <-result, want)
		second.commit()
		s.want(end, 1)
	}
}

// saveAside saves in a goroutine, because the save may wait.
func (a act) saveAside(writes ...persistence.Write) <-chan []bool {
	result := make(chan []bool, 1)
	go func() {
		won, err := a.tx.Save(a.Context(), writes)
		if err != nil {
			a.Errorf("save aside: %v", err)
		}
		result <- won
	}()
	return result
}

func startWaitsForAnUncommittedComplete(s scene) {
	s.won("start", s.then(start(order("7", 1))), true)
	first, second := s.begin(), s.begin()
	s.won("complete", first.save(write(persistence.Complete, first.get(key("7")))), true)
	result := second.saveAside(start(order("7", 2)))
	s.store.blocked(s.T, second.tx)
	first.commit()
	s.won("start anew", <-result, true)
	second.commit()
	if i := s.want("7", 1); i.ID != order("7", 2).ID {
		s.Errorf("order/7 is %s, want the second life", i.ID)
	}
}

// Saving an instance that another transaction has locked loses at once, or wins at once if both change nothing.
func saveNeverWaits(s scene) {
	s.won("start", s.then(start(order("7", 1)), start(order("8", 2)), start(order("9", 3))), true, true, true)
	old := []persistence.Found{s.released(key("7")), s.released(key("8")), s.released(key("9"))}
	holder := s.begin()
	f := holder.load(key("7"), key("8"), key("9"))
	holder.save(write(persistence.Check, f[0]), write(persistence.Update, f[1]), write(persistence.Complete, f[2]))
	for _, op := range []persistence.Op{persistence.Check, persistence.Update, persistence.Complete} {
		other := s.begin()
		s.atOnce(fmt.Sprint("save op ", op), func(ctx context.Context) error {
			won, err := other.tx.Save(ctx, []persistence.Write{
				write(op, old[0]), write(op, old[1]), write(op, old[2]), start(order(fmt.Sprint("n", op), 10+int(op)))})
			if err == nil {
				s.won("held", won, op == persistence.Check && !s.store.lock, false, false, true)
			}
			return err
		})
		other.rollback()
	}
	holder.commit()
	s.want("7", 1)
	s.want("8", 2)
	s.want("9", 0)
}

func loadedByTwoHasOneWinner(s scene) {
	s.won("start", s.then(start(order("7", 1))), true)
	one, two := s.begin(), s.begin()
	first, second := one.get(key("7")), two.load(key("7"))[0]
	if want := map[bool]persistence.Status{true: persistence.Busy,
		false: persistence.Loaded}[s.store.lock]; second.Status != want {
		s.Fatalf("the second load finds it %v, want %v", second.Status, want)
	}
	s.won("first", one.save(write(persistence.Update, first)), true)
	if !s.store.lock {
		s.won("second, before the first commits", two.save(write(persistence.Update, second)), false)
	}
	one.commit()
	if !s.store.lock {
		s.won("second, after", two.save(write(persistence.Update, second)), false)
	}
	f := two.get(key("7"))
	s.won("second, loaded again", two.save(write(persistence.Update, f)), true)
	two.commit()
	s.want("7", 3)
}

// An old transaction still loads the changes that others have committed since it began.
func stateOfALoadIsTheNewest(s scene) {
	s.won("start", s.then(start(order("7", 1)), start(order("8", 2))), true, true)
	old := s.begin()
	old.get(key("8"))
	a := s.begin()
	f := a.get(key("7"))
	f.Instance.State = []byte(`{"n":"new"}`)
	s.won("update", a.save(write(persistence.Update, f)), true)
	a.commit()
	if f := old.get(key("7")); f.Instance.Version != 2 || string(f.Instance.State) != `{"n":"new"}` {
		s.Errorf("an old transaction loads version %d, %s", f.Instance.Version, f.Instance.State)
	}
	old.commit()
}
