package deadletter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// A group has its newest note, with its author; other groups have no note, and an empty note removes it.
func TestNotesOnGroups(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.OddDatabase(t)
	store := deadletter.New(schema)
	write(t, pool, store, recoverability.Letter{MessageID: saga.ID{1}, Endpoint: "orders", Error: "a"},
		recoverability.Letter{MessageID: saga.ID{2}, Endpoint: "stock", Error: "b"})
	letters := list(t, pool, store, recoverability.LetterFilter{})
	noted, other := letters[0].Group, letters[1].Group
	groups := func() map[string]recoverability.GroupNote {
		t.Helper()
		all, _, err := store.Groups(t.Context(), pool, recoverability.GroupFilter{Notes: true})
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		return map[string]recoverability.GroupNote{all[0].Name: all[0].Note, all[1].Name: all[1].Note}
	}
	ctx := operate.WithActor(t.Context(), operate.Actor{Name: "ann"})
	text := "the certificate has expired\nOPS-1234" + strings.Repeat("é", 982)
	spaced := "10\u00a0% of\u3000it \U0001f469\u200d\U0001f692" // as people and their editors write it
	for _, text := range []string{spaced, "first", text, text} {
		if err := store.SetNote(ctx, pool, noted, text); err != nil {
			t.Fatal(err)
		}
	}
	if found := groups(); found[noted].Text != text || found[noted].By != "ann" || found[noted].At.IsZero() ||
		found[other] != (recoverability.GroupNote{}) {
		t.Errorf("%+v", found)
	}
	if all, _, err := store.Groups(ctx, pool, recoverability.GroupFilter{}); err != nil || all[0].Note.Text+
		all[1].Note.Text != "" {
		t.Errorf("notes that nobody asked for: %+v, %v", all, err)
	}
	log, err := operate.New(pool, operate.Options{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := log.Audit(ctx, operate.AuditFilter{Verb: "dead.note", Target: "group " + noted})
	if err != nil || len(entries) != 3 || string(entries[0].Before) != `{"note":"first"}` {
		t.Errorf("want three entries, for the fourth text was there already: %+v, %v", entries, err)
	}
	if err := store.SetNote(ctx, pool, noted, ""); err != nil || groups()[noted].Text != "" {
		t.Errorf("%+v, %v", groups(), err)
	}
}

func TestWhatIsNoNoteIsRefused(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	write(t, pool, store, recoverability.Letter{MessageID: saga.ID{1}, Error: "a"})
	group := list(t, pool, store, recoverability.LetterFilter{})[0].Group
	for name, text := range map[string]string{
		"has 2001 bytes": strings.Repeat("x", 2001), "not UTF-8 text": "a\xff",
		"invisible": "a\u202eb", "characters": "a\x00b",
	} {
		err := store.SetNote(t.Context(), pool, group, text)
		if !errors.Is(err, deadletter.ErrNote) || !strings.Contains(err.Error(), name) {
			t.Errorf("%.20q: %v, want ErrNote that says %q", text, err, name)
		}
	}
	for _, group := range []string{"373371abe806", ""} {
		if err := store.SetNote(t.Context(), pool, group, "x"); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("group %q: %v, want ErrNotFound", group, err)
		}
	}
	err := store.SetNote(t.Context(), pool, "no text: \xff", "x") // the database refuses to search for it
	if err == nil || errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("a search that failed: %v, want another error than ErrNotFound", err)
	}
}
