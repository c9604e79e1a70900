package remote

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
)

// verdict judges a run of the scenario.
type verdict struct {
	runs    int
	strikes bool // what both sides share is broken, too
}

const (
	// How long before a loss its reason may lie: the silence, and then the kills of schedulers one after another, each
	// of which holds the next one up for a lease.
	reasonWithin = lostAfter + 10*lease
	inHand       = 3 * time.Second // a broker brings what a killed process had after two
	onItsWay     = 2 * time.Second
)

// judge compares what was triggered with the runs, the work and what was said.
func (v verdict) judge(ctx context.Context, l *lab.Lab) error {
	var triggered, ended, attempts, lost, failed, works, kills, strikes int
	if err := l.Row(ctx, sql.Get("figures"), []any{Strike}, &triggered, &ended, &attempts, &lost, &failed, &works,
		&kills, &strikes); err != nil {
		return err
	}
	l.Expect(triggered == v.runs, "forgotten", "%d runs were triggered, of %d", triggered, v.runs)
	l.Expect(kills > 0, "idle", "no process was killed")
	l.Expect(lost > 0, "idle", "no attempt was lost")
	l.Expect(strikes > 0 || !v.strikes, "idle", "the shared parts of both sides were not broken")
	for _, f := range []struct {
		name string
		n    int
	}{{"runs", triggered}, {"ended", ended}, {"attempts", attempts}, {"lost_attempts", lost},
		{"failed_attempts", failed}, {"works", works}} {
		l.Fact(f.name, f.n)
	}
	return l.Check(ctx, l.Pool, "check", Strike, reasonWithin, inHand, onItsWay)
}
