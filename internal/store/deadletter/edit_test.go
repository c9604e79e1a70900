package deadletter_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEditSendsTheNewMessageAndKeepsTheOld(t *testing.T) {
	t.Parallel()
	old := recoverability.Letter{Endpoint: "orders", Kind: "order.place", MessageID: saga.ID{1},
		Header: []byte(`{"edda-from":"shop","tenant":"acme","trace":"7"}`), Body: []byte("{\"Total\":\"\xff\"}")}
	cases := map[string]struct {
		edit   recoverability.Edit
		id     saga.ID
		header string
		body   string
	}{
		"nothing": {recoverability.Edit{}, saga.ID{1}, string(old.Header), string(old.Body)},
		"the body": {recoverability.Edit{Body: []byte(`{"Total":7}`), JSON: true}, saga.ID{1}, string(old.Header),
			`{"Total":7}`},
		"an empty one": {recoverability.Edit{Body: []byte{}}, saga.ID{1}, string(old.Header), ``},
		"the headers": {recoverability.Edit{Set: map[string]string{"tenant": "\"b\"", "new": "x"},
			Remove: []string{"trace", "none"}}, saga.ID{1},
			`{"edda-from":"shop","new":"x","tenant":"\"b\""}`, string(old.Body)},
		"the id": {recoverability.Edit{ID: saga.ID{2}}, saga.ID{2}, string(old.Header), string(old.Body)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, old)
			c.edit.Reason = "the total was no number"
			if err := o.store.Edit(t.Context(), o.pool, o.resend, 1, c.edit); err != nil {
				t.Fatal(err)
			}
			var id string
			var header, body []byte
			if err := o.pool.QueryRow(t.Context(), o.schema.Render("SELECT id, header, body FROM :schema.resent")).Scan(
				&id, &header, &body); err != nil {
				t.Fatal(err)
			}
			if id != c.id.String() || string(header) != c.header || string(body) != c.body {
				t.Errorf("sent %s %s %q\nwant %s %s %q", id, header, body, c.id, c.header, c.body)
			}
			edited, err := o.store.ListEdited(t.Context(), o.pool, recoverability.LetterFilter{MessageID: saga.ID{1}})
			want := []recoverability.Original{{Letter: 1, Endpoint: "orders", MessageID: saga.ID{1}, SentAs: c.id,
				Kind: "order.place", Header: old.Header, Body: old.Body, Reason: c.edit.Reason}}
			if diff := cmp.Diff(want, edited,
				cmpopts.IgnoreFields(recoverability.Original{}, "Number", "By", "At")); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if edited[0].By == "" || edited[0].At.IsZero() {
				t.Errorf("nobody knows who did that and when: %+v", edited[0])
			}
			if err := o.store.Edit(t.Context(), o.pool, o.resend, 1, c.edit); !errors.Is(err, deadletter.ErrNotFound) {
				t.Errorf("a second edit: %v, want ErrNotFound", err)
			}
			o.want(0, 1, 0)
		})
	}
}

// A header that cannot be decoded may be the reason why the letter died.
func TestEditReplacesAHeaderThatIsNone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, recoverability.Letter{Endpoint: "orders", Header: []byte("\xff"), Body: []byte("{}")})
	if err := o.store.Edit(t.Context(), o.pool, o.resend, 1,
		recoverability.Edit{Set: map[string]string{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	if n := o.count(`SELECT count(*) FROM :schema.resent WHERE header = '{"a":"b"}'`); n != 1 {
		t.Error("the header is not what was asked for")
	}
}

func TestEditRefusesWhatASendWould(t *testing.T) {
	t.Parallel()
	o := newOffice(t, recoverability.Letter{Endpoint: "orders", Header: []byte("{}"), Body: []byte("{}")},
		recoverability.Letter{Endpoint: "nowhere", Body: []byte("{}")})
	many := map[string]string{}
	for n := range 65 {
		many[fmt.Sprint("h", n)] = "x"
	}
	large := map[string]string{}
	for n := range 8 {
		large[fmt.Sprint("h", n)] = strings.Repeat("x", 8192)
	}
	for want, e := range map[string]recoverability.Edit{
		"the limit is 1048576":       {Body: bytes.Repeat([]byte("x"), 1<<20+1)},
		"the body is not JSON":       {Body: []byte("{"), JSON: true},
		"edda-from\" may only be":    {Set: map[string]string{"edda-from": "x"}},
		"edda-intent\" may only":     {Remove: []string{"edda-intent"}},
		"\"\" may only be set by":    {Set: map[string]string{"": "x"}},
		"more than 8192 bytes":       {Set: map[string]string{"a": strings.Repeat("x", 8193)}},
		"not UTF-8 text without NUL": {Set: map[string]string{"a": "\x00"}},
		"65 headers":                 {Set: many},
		"8 headers with 65568 bytes": {Set: large},
	} {
		if err := o.store.Edit(t.Context(), o.pool, o.resend, 1, e); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := o.store.Edit(t.Context(), o.pool, o.resend, 2, recoverability.Edit{}); !errors.Is(err,
		deadletter.ErrUndeliverable) {
		t.Errorf("%v, want ErrUndeliverable", err)
	}
	edited, err := o.store.ListEdited(t.Context(), o.pool, recoverability.LetterFilter{})
	if err != nil || len(edited) != 0 {
		t.Errorf("%+v, %v", edited, err)
	}
	o.want(2, 0, 0)
}
