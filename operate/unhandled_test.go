package operate_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
)

// Messages that wait because no program handles their kind are counted by kind. Messages that wait for a different
// reason, that a worker has taken, or that are due later than such a message can be, are not counted.
func TestUnhandledKindsAreCounted(t *testing.T) {
	r, _, schema := newReader(t)
	owner := pgtest.Pool(t) // installs the endpoint
	op, err := operate.New(owner, operate.Options{Schema: schema.Name()})
	if err == nil {
		err = op.Queues().Install(t.Context(), "tasks")
	}
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int, kind, due, holder, text string) {
		pgtest.Exec(t, owner, schema.Render(`
			INSERT INTO :schema.queue_1 (due, id, kind, header, body, first_failed, owner, last_error)
			SELECT now() + $3::interval, gen_random_uuid(), $2, '{}', '{}', now() - interval '1 minute',
			       nullif($4, '')::uuid, $5 FROM generate_series(1, $1)`), n, kind, due, holder, text)
	}
	unknown := "some kind: " + bus.ErrUnknownKind.Error() + "; this endpoint consumes [work]"
	put(2, "typo", "30 seconds", "", unknown)
	put(3, "lost", "50 seconds", "", unknown)
	put(1, "failed", "10 seconds", "", "the bank is closed")
	put(1, "claimed", "10 seconds", "00000000-0000-0000-0000-000000000001", unknown)
	put(1, "later", "2 minutes", "", unknown)
	put(1, "due", "-1 second", "", unknown)
	found, err := r.Unhandled(t.Context(), "tasks", "gone")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []operate.Unhandled{{Kind: "lost", Messages: 3}, {Kind: "typo", Messages: 2}} {
		if len(found) != 2 || found[n].Endpoint != "tasks" || found[n].Kind != want.Kind ||
			found[n].Messages != want.Messages || found[n].More || time.Since(found[n].Since) < 50*time.Second {
			t.Fatalf("found %+v, want lost 3 and typo 2", found)
		}
	}
	put(1000, "many", "20 seconds", "", unknown)
	if found, err = r.Unhandled(t.Context(), "tasks"); err != nil || len(found) != 1 || !found[0].More ||
		found[0].Messages != 998 { // two are due before now
		t.Errorf("of more than a thousand: %+v %v, want 998 of many, and more", found, err)
	}
}
