package limits

import (
	"context"
	"flag"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
)

// Order keeps the order of keys while workers are killed and frozen.
var Order = lab.Scenario{
	Name: "order", About: "messages in the order of their keys, workers that are killed and frozen",
	Full:  lab.Size{Workers: 3, Kills: 30, Freezes: 30},
	Quick: lab.Size{Workers: 3, Kills: 4, Freezes: 3},
	Flags: func(f *flag.FlagSet) {
		f.IntVar(&keys, "keys", 20, "order: keys")
		f.IntVar(&messages, "messages", 0, "order: messages of each key; 0 is enough for its kills and freezes")
	},
	SQL: sql, Rules: []string{"overtakes", "together", "late", "lost", "doubled"},
	Run: func(ctx context.Context, s lab.Settings) error {
		return s.Try(ctx, lab.Trial{Server: pgdev.Options{Durable: true}, Task: lab.All(task{Ordered: true}),
			Prepare: sendTurns, Break: breakOrder, Judge: judgeOrder})
	},
	Work: work,
}

var keys, messages int // flags

const (
	idleMost  = lease + poll + time.Second // the second is for a machine with few processors
	drainMost = 5 * time.Minute
)

func sendTurns(ctx context.Context, l *lab.Lab) error {
	each := messages
	if each == 0 {
		each = 60 + 7*l.Kills + 25*l.Freezes
	}
	var turns []turn
	for n := range each {
		for k := range keys {
			turns = append(turns, turn{Key: "key-" + strconv.Itoa(k), N: n})
		}
	}
	if err := fill(ctx, l, turns); err != nil {
		return err
	}
	l.Fact("keys", keys)
	l.Fact("messages", len(turns))
	return l.Exec(ctx, sql.Get("told_turns"), keys, each)
}

// breakOrder kills and freezes workers in random order, and lets the rest be handled in peace.
func breakOrder(ctx context.Context, l *lab.Lab) error {
	expiries := func(p *procs.Process) error { return l.Exec(ctx, sql.Get("lane_expiries"), p.Name, p.Pid()) }
	err := l.Crew.StrikeAll(ctx, 500*time.Millisecond, 2*time.Second,
		lab.Blow{Share: l.Kills, Strike: l.Crew.KillAny},
		lab.Blow{Share: l.Freezes, Strike: func(ctx context.Context) error {
			return l.Crew.FreezeAny(ctx, lease+200*time.Millisecond, lease+1700*time.Millisecond, expiries)
		}})
	if err != nil {
		return err
	}
	left, err := l.Left(ctx)
	if err != nil {
		return err
	}
	l.Expect(left > 0, "ran out", "the messages ran out before the last blow: give more by -messages")
	return l.Finish(ctx, drainMost)
}

func judgeOrder(ctx context.Context, l *lab.Lab) error {
	var runs, failed, zombies, kills, freezes int
	var idle time.Duration
	if err := l.Row(ctx, sql.Get("figures"), nil, &runs, &failed, &zombies, &kills, &freezes, &idle); err != nil {
		return err
	}
	l.Fact("runs", runs)
	l.Fact("failed", failed)
	l.Fact("zombies", zombies)
	l.Fact("idle", idle)
	l.Expect(zombies < runs, "no lane", "no run of %d held the lane of its key", runs)
	l.Expect(idle <= idleMost, "idle", "no handler began for %v, and the most is %v", idle, idleMost)
	l.Expect(kills == l.Kills && freezes == l.Freezes, "blows", "%d kills and %d freezes, want %d and %d", kills,
		freezes, l.Kills, l.Freezes)
	if err := l.CheckEffects(ctx, l.Pool); err != nil {
		return err
	}
	return l.CheckAll(ctx, l.Pool, "check_order", "check_late")
}
