package deadletter_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
)

func TestEachStatementIsPreparedAndUsedOnce(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "statements.sql")
}

// Bodies that JSON columns rewrite or refuse, and headers that would act on a terminal.
func TestBytesAreKept(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	bodies := []string{
		`{"a":"\u0000"}`, "{\"a\":\"\x00\"}", "{\"a\":\"\xff\xfe\"}", `{"a":"\ud800"}`,
		`{"n":9007199254740993,"p":1.10,"n":2,"N":3,"z":1,"a":2}`, `[1e131072,NaN,Infinity]`,
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "", "null", `""`, " \t\r\n",
	}
	headers := []string{"{}", "", "{\"a\":\"\x1b[31mred\x1b[0m\\r\\nSet-Cookie: x\"}",
		"{\"a\":\"\u202egnp.exe\u2066\"}", "\x00\xff"}
	var letters []recoverability.Letter
	for n, body := range bodies {
		letters = append(letters, recoverability.Letter{
			Endpoint: "orders", MessageID: saga.ID{1, byte(n)}, Kind: "order.place", Attempts: 24, Conflicts: 3,
			Header: []byte(headers[n%len(headers)]), Body: []byte(body), Reason: "attempts", Error: "no stock",
			Sent:        time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC),
			FirstFailed: time.Date(2024, 1, 2, 3, 4, 6, 0, time.UTC),
		})
	}
	write(t, pool, store, letters...)
	found := list(t, pool, store, recoverability.LetterFilter{})
	if len(found) != len(letters) {
		t.Fatalf("%d dead letters are listed, want %d", len(found), len(letters))
	}
	stamped := cmpopts.IgnoreFields(recoverability.Letter{}, "Number", "Died", "Group")
	for n, want := range letters {
		got, err := store.Show(t.Context(), pool, found[n].Number)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, stamped); diff != "" {
			t.Errorf("dead letter %d (-want +got):\n%s", n, diff)
		}
		if time.Since(got.Died).Abs() > time.Minute {
			t.Errorf("dead letter %d died %v", n, got.Died)
		}
		want.Body = nil
		if diff := cmp.Diff(want, found[n], stamped); diff != "" {
			t.Errorf("dead letter %d in the list (-want +got):\n%s", n, diff)
		}
	}
}

// A dead letter whose error cannot be stored would fail its batch again and again.
func TestNoTextFailsTheInsert(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	kib8 := strings.Repeat("x", 8192)
	texts := map[string]struct{ given, kept string }{
		"NUL":                  {"a\x00b", "a\uFFFDb"},
		"not UTF-8":            {"a\xffb\xc3", "a\uFFFDb\uFFFD"},
		"an encoded surrogate": {"\xed\xa0\x80", "\uFFFD"},
		"terminal codes":       {"\x1b[2J\u202e\r\n", "\x1b[2J\u202e\r\n"},
		"10 MB":                {strings.Repeat("x", 10<<20), kib8},
		"cut within a rune":    {kib8[1:] + "äöü", kib8[1:]},
		"exactly the limit":    {kib8, kib8},
		"NULs up to the limit": {strings.Repeat("\x00", 8192),
			strings.Repeat("\uFFFD", 2730)},
		"empty": {"", ""},
	}
	for name, text := range texts {
		l := recoverability.Letter{MessageID: saga.ID{1}, Endpoint: text.given, Kind: text.given, Reason: text.given,
			Error: text.given}
		d := recoverability.Discarded{MessageID: saga.ID{1}, Endpoint: text.given, Kind: text.given, Saga: text.given,
			Key: text.given, Reason: text.given}
		b := &pgx.Batch{}
		store.QueueLetters(b, []recoverability.Letter{l})
		store.QueueDiscarded(b, []recoverability.Discarded{d})
		if err := pool.SendBatch(t.Context(), b).Close(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		letters := list(t, pool, store, recoverability.LetterFilter{})
		gone := discarded(t, pool, store, recoverability.LetterFilter{})
		last, lastGone := letters[len(letters)-1], gone[len(gone)-1]
		for _, got := range []string{last.Endpoint, last.Kind, last.Reason, last.Error, lastGone.Saga, lastGone.Key,
			lastGone.Reason} {
			if got != text.kept || !utf8.ValidString(got) {
				t.Errorf("%s: kept %d bytes %.40q, want %d bytes %.40q", name, len(got), got, len(text.kept), text.kept)
			}
		}
	}
}

func TestNoNumberOrTimeFailsTheInsert(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	times := []time.Time{{}, time.Unix(math.MaxInt32*1e6, 0), time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.UnixMicro(math.MinInt64)}
	for _, at := range times {
		write(t, pool, store, recoverability.Letter{Attempts: math.MaxInt, Conflicts: math.MaxInt, Sent: at,
			FirstFailed: at})
	}
	for _, l := range list(t, pool, store, recoverability.LetterFilter{}) {
		if !l.Sent.IsZero() || !l.FirstFailed.IsZero() || l.Attempts != math.MaxInt32 {
			t.Errorf("dead letter %d: sent %v, first failed %v, %d attempts", l.Number, l.Sent, l.FirstFailed,
				l.Attempts)
		}
	}
}

func TestListPagesAndFilters(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	var letters []recoverability.Letter
	for n := range 250 {
		letters = append(letters, recoverability.Letter{
			Endpoint: []string{"orders", "stock"}[n%2], Kind: []string{"a", "b", "c"}[n%3],
			MessageID: saga.ID{byte(n / 2)},
		})
	}
	write(t, pool, store, letters...)
	cases := []struct {
		filter recoverability.LetterFilter
		want   int
	}{
		{recoverability.LetterFilter{}, 50},
		{recoverability.LetterFilter{Limit: 200}, 200},
		{recoverability.LetterFilter{Endpoint: "stock", Limit: 200}, 125},
		{recoverability.LetterFilter{Kind: "a", Limit: 200}, 84},
		{recoverability.LetterFilter{Endpoint: "orders", Kind: "b", Limit: 200}, 41},
		{recoverability.LetterFilter{MessageID: saga.ID{7}}, 2},
		{recoverability.LetterFilter{MessageID: saga.ID{7}, Endpoint: "stock"}, 1},
		{recoverability.LetterFilter{MessageID: saga.ID{7}, Kind: "no"}, 0},
		{recoverability.LetterFilter{Endpoint: "nobody"}, 0},
	}
	for _, c := range cases {
		if got := list(t, pool, store, c.filter); len(got) != c.want {
			t.Errorf("%+v: %d dead letters, want %d", c.filter, len(got), c.want)
		}
	}
	// A list that silently ended at the maximum would look complete.
	for what, err := range map[string]error{
		"List":          errorOf(store.List(t.Context(), pool, recoverability.LetterFilter{Limit: 201})),
		"ListDiscarded": errorOf(store.ListDiscarded(t.Context(), pool, recoverability.LetterFilter{Limit: 201})),
		"ListEdited":    errorOf(store.ListEdited(t.Context(), pool, recoverability.LetterFilter{Limit: 201})),
		"Jobs":          errorOf(store.Jobs(t.Context(), pool, 201)),
	} {
		if err == nil || !strings.Contains(err.Error(), "Limit is 201, want at most 200") {
			t.Errorf("%s takes a limit that is too high: %v", what, err)
		}
	}
	var numbers []int64
	for f := (recoverability.LetterFilter{Endpoint: "orders", Limit: 7}); ; f.After = numbers[len(numbers)-1] {
		page := list(t, pool, store, f)
		for _, l := range page {
			numbers = append(numbers, l.Number)
		}
		if len(page) < f.Limit {
			break
		}
	}
	if len(numbers) != 125 || !slices.IsSorted(numbers) {
		t.Errorf("pages have %d dead letters, want 125 in order: %v", len(numbers), numbers)
	}
}

func TestDiscardedAreListedAndPruned(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := deadletter.New(schema)
	row := recoverability.Discarded{Endpoint: "orders", MessageID: saga.ID{1}, Kind: "order.overdue", Saga: "order",
		Key: "7", Reason: "instance is gone"}
	b := &pgx.Batch{}
	store.QueueDiscarded(b, []recoverability.Discarded{row, row, row})
	if err := pool.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	got := discarded(t, pool, store, recoverability.LetterFilter{Endpoint: "orders", Kind: "order.overdue",
		MessageID: saga.ID{1}})
	if diff := cmp.Diff([]recoverability.Discarded{row, row, row}, got,
		cmpopts.IgnoreFields(recoverability.Discarded{}, "Number", "At")); diff != "" {
		t.Fatalf("discarded (-want +got):\n%s", diff)
	}
	if _, err := pool.Exec(t.Context(), schema.Render("UPDATE :schema.discarded SET at = at - interval '31 days' "+
		"WHERE id > $1"), got[0].Number); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{1, 1, 0} {
		if n, err := store.Prune(t.Context(), pool, 30*24*time.Hour, 1); err != nil || n != want {
			t.Errorf("prune: %d rows, %v; want %d", n, err, want)
		}
	}
	left := discarded(t, pool, store, recoverability.LetterFilter{})
	if len(left) != 1 || left[0].Number != got[0].Number {
		t.Errorf("left after pruning: %+v", left)
	}
}

func TestShowOfNothingIsNotFound(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	if _, err := store.Show(t.Context(), pool, 1); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("show: %v, want ErrNotFound", err)
	}
}

func TestNothingQueuesNothing(t *testing.T) {
	t.Parallel()
	_, store := open(t)
	b := &pgx.Batch{}
	store.QueueLetters(b, nil)
	store.QueueDiscarded(b, nil)
	if b.Len() != 0 {
		t.Errorf("%d statements were queued for nothing", b.Len())
	}
}

func errorOf[T any](_ T, err error) error { return err }
