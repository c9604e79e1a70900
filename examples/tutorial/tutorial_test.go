package tutorial_test

import (
	"os"
	"regexp"
	"syscall"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// development are the variables of a part that sets up its database by itself.
func development(dsn string, more ...string) []string {
	return append(more, "DATABASE_URL="+dsn, "EDDA_PAGES=off")
}

func TestFirstPartsAsTheReaderRunsThem(t *testing.T) {
	t.Parallel()
	for part, lines := range [][]string{
		{"order 7: placed, 1990 cents", "order 8: placed, 1990 cents"},
		{"takes 1990 cents", "again, nothing is taken", "order 7: 1990 cents are paid", "order 8: 1990"},
		{"order 7: 1990 cents are paid", "order 7: shipped", "order 8: shipped"},
	} {
		t.Run(parts[part], func(t *testing.T) {
			t.Parallel()
			p := start(t, buildPart(t, part+1), development(eddatest.DSN(t)), "7", "8")
			p.says(lines...)
			p.stops(syscall.SIGTERM)
		})
	}
}

// Part 4: with a revoked key there are dead letters, and with the right one their retry ships the orders.
func TestDeadLettersAreRetriedAfterTheRepair(t *testing.T) {
	t.Parallel()
	dsn, program := eddatest.DSN(t), buildPart(t, 4)
	broken := start(t, program, development(dsn, "BANK_KEY=2025"), "7", "8")
	broken.says("edda: message dead-lettered", "edda: message dead-lettered")
	broken.stops(os.Interrupt)
	repaired, pool := start(t, program, development(dsn)), open(t, dsn)
	operator, err := operate.New(pool, operate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	letters := operator.DeadLetters()
	all, err := letters.List(t.Context(), recoverability.LetterFilter{})
	if err != nil || len(all) != 2 {
		t.Fatalf("there are the dead letters %+v, %v; want two", all, err)
	}
	for _, l := range all {
		if err := letters.Retry(t.Context(), l.Number); err != nil {
			t.Error(err)
		}
	}
	repaired.says("order 7: shipped", "order 8: shipped")
	repaired.stops(os.Interrupt)
}

// Part 5: the programs of the parts 4 and 5 run at once on one database, and the orders of both are shipped.
func TestTwoVersionsAtOnce(t *testing.T) {
	t.Parallel()
	dsn := eddatest.DSN(t)
	old, now := buildPart(t, 4), buildPart(t, 5)
	first := start(t, old, development(dsn), "1", "2", "3")
	first.says("order 1: 1990 cents are paid")
	second := start(t, now, development(dsn), "4", "5", "6")
	shipped := map[string]bool{}
	for len(shipped) < 6 {
		line, ok := "", false
		select {
		case line, ok = <-first.lines:
		case line, ok = <-second.lines:
		}
		if !ok {
			t.Fatalf("a program ended, and only %v are shipped", shipped)
		}
		if number := shippedOrder.FindStringSubmatch(line); number != nil {
			shipped[number[1]] = true
		}
	}
	first.stops(syscall.SIGTERM)
	second.stops(syscall.SIGTERM)
}

func open(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

var shippedOrder = regexp.MustCompile(`order (\d+): shipped`)

// Part 5: what a program of part 4 has left, states and messages, the new program ends.
func TestNewVersionTakesOverWhatTheOldOneLeft(t *testing.T) {
	t.Parallel()
	dsn, old, now := eddatest.DSN(t), buildPart(t, 4), buildPart(t, 5)
	first := start(t, old, development(dsn))
	first.says("endpoint started", "endpoint started")
	pool := open(t, dsn)
	operator, err := operate.New(pool, operate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Endpoints().Pause(t.Context(), "payments", "the release"); err != nil {
		t.Fatal(err)
	}
	first.stops(os.Interrupt)
	first = start(t, old, development(dsn), "1", "2")
	awaitOrders(t, pool, "1", "2")
	first.stops(os.Interrupt)
	second := start(t, now, development(dsn), "3")
	second.says("endpoint is paused")
	if err := operator.Endpoints().Resume(t.Context(), "payments"); err != nil {
		t.Fatal(err)
	}
	second.says("order 1: shipped", "order 2: shipped", "order 3: shipped")
	second.stops(os.Interrupt)
}

// awaitOrders waits until these orders live.
func awaitOrders(t *testing.T, pool *pgxpool.Pool, numbers ...string) {
	t.Helper()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range numbers {
		for seen, err := range b.Watch(t.Context(), anyOrder, number, bus.WatchCursor{}) {
			if err != nil {
				t.Fatal(err)
			}
			if seen.Status == bus.InstanceLiving {
				break
			}
		}
	}
}

type begin struct{ Order string }

func (begin) Kind() string { return "order.place" }

// anyOrder has the name of the saga, whose states the test does not read.
var anyOrder = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m begin) string { return m.Order }, func(*struct{}, *saga.Context, begin) error { return nil }))
