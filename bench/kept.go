package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The numbers of messages that wait behind the measured ones. quickSize is the largest of -quick.
var (
	backlogSizes = []int{1e4, 1e5, 1e6, 1e7}
	timersSizes  = []int{0, 1e5, 1e6}
)

const quickSize = 1e5

// keptRounds is how many rounds of these workloads one round of the others is worth: their runs take half a second.
const keptRounds = 3

// registerKept adds the backlog and timers cases of a peer that is registered.
func registerKept(name, store string) {
	r := peers[name]
	for _, size := range backlogSizes {
		r.cases = append(r.cases, Case{Peer: name, Workload: Backlog, Store: store, Processes: 1, Share: 1, Size: size})
	}
	for _, size := range timersSizes {
		r.cases = append(r.cases, Case{Peer: name, Workload: Timers, Store: store, Processes: 1, Share: 1, Size: size})
	}
	peers[name] = r
}

// filler is a peer whose queue the harness fills in the server: (due, id, kind, header, body), id and due in a key.
type filler interface {
	Peer
	Queue() string // the name of the table in the schema of the case
}

// kept is a filled queue that serves all rounds.
type kept struct {
	filled  int64   // due messages ever inserted
	effects Effects // after the last run; Left does not count the timers
}

// prepareKept fills the queues of the cases that keep theirs, all of them before the first run, so that the rounds
// can go through all sizes and peers in turn.
func (h *harness) prepareKept(ctx context.Context, cases []Case) error {
	h.kept = map[Case]*kept{}
	for _, c := range cases {
		if !c.Kept() {
			continue
		}
		begun := time.Now()
		if err := h.fillKept(ctx, c); err != nil {
			return fmt.Errorf("prepare %s on %s: %w", c.Peer, c.Name(), err)
		}
		fmt.Fprintf(h.log, "filled     %-18s %-20s in %.1f s\n", c.Peer, c.Name(), time.Since(begun).Seconds())
	}
	return nil
}

func (h *harness) fillKept(ctx context.Context, c Case) error {
	if err := h.prepare(ctx, c); err != nil {
		return err
	}
	k := &kept{}
	h.kept[c] = k
	if c.Workload == Timers {
		return h.insert(ctx, c, 1, int64(c.Size), true)
	}
	k.filled = int64(c.Size)
	return h.insert(ctx, c, 1, k.filled, false)
}

// insert adds the messages from first to last to the queue of the case.
func (h *harness) insert(ctx context.Context, c Case, first, last int64, later bool) error {
	text := strings.ReplaceAll(statements(tablesSQL, c.Schema())["fill"], ":queue", peers[c.Peer].peer.(filler).Queue())
	_, err := h.db.Exec(ctx, text, first, last, later)
	return err
}

// runKept tops the queue up, so that c.Size messages will wait when c.N are handled, and measures. The vacuum
// replaces the autovacuum of a queue of this size, and the checkpoint keeps earlier writes out of the measured run.
func (h *harness) runKept(ctx context.Context, c Case) (Result, error) {
	k := h.kept[c]
	missing := int64(c.N) + k.effects.Sent - k.filled
	if c.Workload == Backlog {
		missing += int64(c.Size)
	}
	if err := h.insert(ctx, c, k.filled+1, k.filled+missing, false); err != nil {
		return Result{}, fmt.Errorf("top up: %w", err)
	}
	k.filled += missing
	if err := h.settle(ctx, c); err != nil {
		return Result{}, err
	}
	result, err := h.measure(ctx, c)
	if err != nil {
		return Result{}, err
	}
	handled, err := h.checkKept(ctx, c, k)
	share := float64(c.N) / float64(handled) // the workers end their batches, so that it is a few more than c.N
	result.Rate, result.ClientCPU, result.ServerCPU = result.Rate/share, result.ClientCPU*share, result.ServerCPU*share
	return result, err
}

func (h *harness) settle(ctx context.Context, c Case) error {
	for _, table := range []string{peers[c.Peer].peer.(filler).Queue(), "saga"} {
		if _, err := h.db.Exec(ctx, "VACUUM (ANALYZE) "+pgx.Identifier{c.Schema(), table}.Sanitize()); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
	}
	_, err := h.db.Exec(ctx, "CHECKPOINT")
	return err
}

// checkKept returns how many messages the run has handled. Every message that was ever inserted must be in the queue or
// have been handled exactly once, and at least c.N were.
func (h *harness) checkKept(ctx context.Context, c Case, k *kept) (int64, error) {
	got, err := peers[c.Peer].peer.Effects(ctx, h.db, c)
	if err != nil {
		return 1, fmt.Errorf("count effects: %w", err)
	}
	if c.Workload == Timers {
		got.Left -= int64(c.Size)
	}
	handled := got.Sent - k.effects.Sent
	k.effects = got
	want := Effects{Left: k.filled - got.Sent, Sent: got.Sent, SentTotal: got.SentTotal, Steps: got.Sent,
		Total: got.SentTotal}
	if got != want || handled < int64(c.N) {
		return 1, fmt.Errorf("wrong effects: %d of %d handled\n got %+v\nwant %+v", handled, c.N, got, want)
	}
	return handled, nil
}

func (h *harness) dropKept(ctx context.Context, cases []Case) {
	ctx = context.WithoutCancel(ctx)
	var errs error
	for _, c := range cases {
		if c.Kept() {
			errs = errors.Join(errs, h.drop(ctx, c))
		}
	}
	if errs != nil {
		fmt.Fprintln(h.log, "drop:", errs)
	}
}
