package bus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// numbered is the Nth message of its key.
type numbered struct {
	Key string
	N   int
}

func (numbered) Kind() string { return "seen.numbered" }

// seen records the numbers in their order of arrival.
type seen struct{ Numbers []int }

// note takes 2 ms, so that a server that is killed has messages in hand.
func (s *seen) note(_ *saga.Context, m numbered) error {
	<-time.After(2 * time.Millisecond)
	s.Numbers = append(s.Numbers, m.N)
	return nil
}

func seenSaga() *saga.Definition {
	return saga.Define("seen", saga.Options{Store: saga.Optimistic},
		saga.StartedBy(func(m numbered) string { return m.Key }, (*seen).note))
}

// serverVariable makes the test binary a server of the partitioned endpoint; its value is a serverSpec.
const serverVariable = "EDDA_PARTITION_SERVER"

type serverSpec struct{ Name, DSN, Schema, Role string }

const (
	serverLease      = 2 * time.Second
	serverPartitions = 8
)

func serverOptions(name string) bus.PartitionOptions {
	return bus.PartitionOptions{Partitions: serverPartitions, Lease: serverLease, Holder: name,
		Endpoint: bus.EndpointOptions{Poll: 200 * time.Millisecond, BatchMax: 50}}
}

// serve is the main function of a server process. It ends in order when its input ends.
func serve(text string) error {
	var spec serverSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	config, err := pgxpool.ParseConfig(spec.DSN)
	if err != nil {
		return err
	}
	config.MaxConns = 4
	pgtest.Become(config, spec.Role)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{
		Schema: spec.Schema, Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify), Logger: slog.New(
			slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Events: func(e event.Event) {
			if e, ok := e.(event.Conflicted); ok {
				_, _ = fmt.Fprintf(os.Stdout, "conflict: %s %+v\n", e.Endpoint, e)
			}
		},
	})
	if err != nil {
		return err
	}
	p, err := bus.NewPartitioned(b, "seen", serverOptions(spec.Name), bus.Saga(seenSaga()))
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// servers are the processes of one test.
type servers struct {
	*world
	mu      sync.Mutex
	out     bytes.Buffer // of all servers
	running map[string]*server
}

type server struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	ended chan error
}

func (s *servers) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *servers) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

func (s *servers) join(name string) {
	s.t.Helper()
	spec, err := json.Marshal(serverSpec{Name: name, DSN: pgtest.DSN(s.t), Schema: s.schema, Role: s.role})
	if err != nil {
		s.t.Fatal(err)
	}
	one := &server{cmd: exec.Command(os.Args[0]), ended: make(chan error, 1)}
	one.cmd.Env = append(os.Environ(), serverVariable+"="+string(spec))
	one.cmd.Stdout, one.cmd.Stderr = s, s
	if one.input, err = one.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := one.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { one.ended <- one.cmd.Wait() }()
	s.running[name] = one
}

// kill ends a server as a crash does, leave as a deploy does.
func (s *servers) kill(name string) {
	s.t.Helper()
	one := s.running[name]
	delete(s.running, name)
	if err := one.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-one.ended
}

func (s *servers) leave(name string) (ended <-chan error) {
	one := s.running[name]
	delete(s.running, name)
	_ = one.input.Close()
	return one.ended
}

// posts returns the queues of each holder, by the database's clock.
func (s *servers) posts() map[string][]string {
	s.t.Helper()
	rows, err := s.owner.Query(s.t.Context(),
		s.sql(`SELECT split_part(holder, '/', 1), split_part(name, '/', 3) FROM edda.lease
		WHERE name LIKE 'partition/seen/seen%' AND holder IS NOT NULL AND expires > clock_timestamp() ORDER BY name`))
	if err != nil {
		s.t.Fatal(err)
	}
	held := map[string][]string{}
	var holder, queue string
	if _, err := pgx.ForEachRow(rows, []any{&holder, &queue}, func() error {
		held[holder] = append(held[holder], queue)
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	return held
}

// settled reports whether the running servers have all queues, and numbers of partitions that differ by one at most.
func (s *servers) settled() bool {
	held, total, least, most := s.posts(), 0, serverPartitions, 0
	for name := range s.running {
		n := len(slices.DeleteFunc(slices.Clone(held[name]), func(queue string) bool { return queue == "seen" }))
		total, least, most = total+len(held[name]), min(least, n), max(most, n)
	}
	return total == serverPartitions+1 && most-least <= 1
}

func (s *servers) untilSettled(what string) (took time.Duration) {
	s.t.Helper()
	begun := time.Now()
	s.until(what, s.settled)
	took = time.Since(begun)
	s.t.Logf("%s: %v, %v", what, took.Round(time.Millisecond), s.posts())
	return took
}

// sendRounds sends one message of every key in each transaction, until stop is closed. It returns the number of rounds.
func (s *servers) sendRounds(ctx context.Context, keys int, stop <-chan struct{}) (rounds int, err error) {
	pace := time.NewTicker(60 * time.Millisecond)
	defer pace.Stop()
	for {
		rounds++
		err := s.bus.InTx(ctx, func(tx pgx.Tx) error {
			for k := range keys {
				if _, err := s.bus.SendTx(ctx, tx, numbered{Key: strconv.Itoa(k), N: rounds}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return rounds, err
		}
		select {
		case <-stop:
			return rounds, nil
		case <-pace.C:
		}
	}
}

// S4-51 to S4-55, C19: the messages of a key are handled in order, once, and without a conflict, while servers are
// killed, leave and come.
func TestPartitionsMoveBetweenServers(t *testing.T) {
	s := &servers{world: newWorld(t, bus.Options{}), running: map[string]*server{}}
	t.Cleanup(func() {
		for name := range s.running {
			s.kill(name)
		}
		if t.Failed() {
			t.Logf("the servers said:\n%s", s.said())
		}
	})
	s.installPartitioned("seen", serverOptions(""), bus.Saga(seenSaga()))
	const keys = 100
	stop, sent := make(chan struct{}), make(chan error, 1)
	rounds := 0
	go func() {
		var err error
		rounds, err = s.sendRounds(t.Context(), keys, stop)
		sent <- err
	}()
	for _, name := range []string{"a", "b", "c"} {
		s.join(name)
	}
	s.untilSettled("three servers share")
	s.kill("b")
	if took := s.untilSettled("b was killed"); took > serverLease+serverLease/3*5/4+pgdev.Patience(2*time.Second) {
		t.Errorf("the partitions of a killed server came to others after %v", took)
	}
	s.join("d")
	s.untilSettled("d has joined")
	s.kill(s.distributor())
	s.join("e")
	s.untilSettled("the distributor was killed, and e joined")
	leaver := s.distributor()
	if err := <-s.leave(leaver); err != nil {
		t.Errorf("the server that left: %v", err)
	}
	if kept := s.posts()[leaver]; len(kept) > 0 {
		t.Errorf("the server that left has kept %v for as long as a lease lasts", kept)
	}
	s.untilSettled("one leaves")
	close(stop)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	s.wantInOrder(keys, rounds)
}

func (s *servers) distributor() string {
	s.t.Helper()
	for name, queues := range s.posts() {
		if slices.Contains(queues, "seen") {
			return name
		}
	}
	s.t.Fatal("nobody distributes")
	return ""
}

func (s *servers) wantInOrder(keys, rounds int) {
	s.t.Helper()
	s.untilEmpty("seen")
	for n := range serverPartitions {
		s.untilEmpty("seen.p" + strconv.Itoa(n))
	}
	for k := range keys {
		var state seen
		_, ok, err := s.bus.Instance(s.t.Context(), seenSaga(), strconv.Itoa(k), &state)
		if err != nil || !ok {
			s.t.Fatal(ok, err)
		}
		if !slices.IsSorted(state.Numbers) || len(state.Numbers) != rounds || state.Numbers[rounds-1] != rounds {
			s.t.Fatalf("key %d of partition %d: %d messages, in the order %v; want 1 to %d", k,
				bus.PartitionOf(strconv.Itoa(k), serverPartitions), len(state.Numbers), state.Numbers, rounds)
		}
	}
	s.want(0, `SELECT count(*) FROM edda.dead_letter`)
	if n := strings.Count(s.said(), "conflict:"); n > 0 {
		s.t.Errorf("%d conflicts, want none", n)
	}
	s.t.Logf("%d messages of %d keys in order", keys*rounds, keys)
}

// installPartitioned installs as the owner, who may create tables.
func (w *world) installPartitioned(name string, o bus.PartitionOptions, parts ...bus.Part) {
	w.t.Helper()
	if err := w.partitioned(w.ownersBus(), name, o, parts...).Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}
