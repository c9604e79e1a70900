package wire

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"}

func ids() *rapid.Generator[saga.ID] {
	return rapid.Custom(func(t *rapid.T) (id saga.ID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		return id
	})
}

// infos generates all Infos that a sender can write: all that saga.Compose accepts.
func infos() *rapid.Generator[saga.Info] {
	name := rapid.StringMatching(`[a-z][a-z0-9_.-]{0,62}`)
	maybe := func(t *rapid.T, what string) saga.ID { return rapid.OneOf(rapid.Just(saga.ID{}), ids()).Draw(t, what) }
	return rapid.Custom(func(t *rapid.T) saga.Info {
		i := saga.Info{
			ID: ids().Filter(func(id saga.ID) bool { return !id.IsZero() }).Draw(t, "id"), Kind: name.Draw(t, "kind"),
			Intent:   saga.Intent(rapid.IntRange(0, 3).Draw(t, "intent")),
			From:     rapid.OneOf(rapid.Just(""), name).Draw(t, "from"),
			Instance: maybe(t, "instance"), Origin: maybe(t, "origin"),
			Expire: time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "expire")),
		}
		i.ConversationID, i.CorrelationID = i.ID, i.ID
		if rapid.Bool().Draw(t, "has a cause") {
			some := ids().Filter(func(id saga.ID) bool { return !id.IsZero() })
			cause := some.Draw(t, "cause")
			i.RelatedTo = cause
			i.ConversationID = rapid.OneOf(rapid.Just(cause), some).Draw(t, "conversation")
			i.CorrelationID = rapid.OneOf(rapid.Just(i.ConversationID), some).Draw(t, "correlation")
		}
		if rapid.Bool().Draw(t, "fired") {
			zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
			if err != nil {
				t.Fatal(err)
			}
			at := rapid.Int64Range(0, 4e18).Draw(t, "due")
			i.Firing = &saga.Firing{Manifest: name.Draw(t, "manifest"), Run: maybe(t, "run"),
				Attempt: rapid.IntRange(1, 5).Draw(t, "run attempt"), Due: time.Unix(0, at).In(zone)}
		}
		text := rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
		usable := func(s string) bool { return s != "" && !strings.HasPrefix(strings.ToLower(s), "edda-") }
		for name, value := range rapid.MapOfN(text.Filter(usable), text, 0, 5).Draw(t, "headers") {
			i.AddHeader(name, value)
		}
		return i
	})
}

// told returns an Info in a form that can be compared and printed.
func told(i saga.Info) map[string]any {
	out := map[string]any{"ids": []saga.ID{i.ID, i.CorrelationID, i.ConversationID, i.RelatedTo, i.Instance, i.Origin},
		"kind": i.Kind, "intent": i.Intent, "from": i.From, "expire": i.Expire}
	if i.Firing != nil {
		out["fire"] = []string{i.Firing.Manifest, i.Firing.Run.String(), strconv.Itoa(i.Firing.Attempt),
			i.Firing.Due.Format(time.RFC3339Nano), i.Firing.Due.Location().String()}
	}
	headers := []string{}
	for name, value := range i.Headers() {
		headers = append(headers, name, value)
	}
	out["headers"] = headers
	return out
}

// A handler reads the sender's values: every field, every header, in the order of their names.
func TestHeaderComesBackAsItWentIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := infos().Draw(t, "info")
		header := AppendHeader(nil, &want)
		got := saga.Info{ID: want.ID, Kind: want.Kind}
		if err := ReadHeader(header, &got); err != nil {
			t.Fatalf("%s: %v", header, err)
		}
		if diff := cmp.Diff(told(want), told(got)); diff != "" {
			t.Fatalf("%s (-written +read):\n%s", header, diff)
		}
	})
}

func TestHeadersOfOtherPrograms(t *testing.T) {
	header := `{ "b":"2", "n": 1.10, "a":"1", "o":{"x":[1]}, "b":"3", "edda-from":"shop" }`
	var i saga.Info
	if err := ReadHeader([]byte(header), &i); err != nil {
		t.Fatal(err)
	}
	var got []string
	for name, value := range i.Headers() {
		got = append(got, name+"="+value)
	}
	if want := []string{"b=3", "n=1.10", "a=1", `o={"x":[1]}`}; !slices.Equal(got, want) || i.From != "shop" {
		t.Errorf("%q from %q, want %q from shop: in the order they were written, the last of two", got, i.From, want)
	}
}

// A newer program may use unknown intents, ids and names: the version decides, in any position.
func TestHeaderOfANewerProgramIsNotAnError(t *testing.T) {
	for header, newer := range map[string]bool{
		`{"edda-version":"2"}`:                              true,
		`{"edda-intent":"whisper","edda-version":"2"}`:      true,
		`{"edda-version":"2","edda-instance":"7"}`:          true,
		`{"edda-instance":"7","x":"\"","edda-version":"3"}`: true,
		`{"edda-intent":"whisper"}`:                         false,
		`{"edda-version":"0"}`:                              false,
		`{"edda-version":"-1"}`:                             false,
		`{"edda-version":""}`:                               false,
		`{"edda-version":"two"}`:                            false,
		`{"edda-version":"99999999999999999999"}`:           false,
	} {
		err := ReadHeader([]byte(header), &saga.Info{})
		if err == nil || errors.Is(err, ErrNewer) != newer {
			t.Errorf("%s: %v, want newer: %t", header, err, newer)
		}
	}
}

func TestWhatIsNoHeader(t *testing.T) {
	for _, header := range []string{
		"", "x", "null", "[]", `"a"`, "{", "}", "{}}", `{"a"}`, `{"a":}`, `{"a":"b",}`, `{"a":"b"}{}`, `{"a":"b"} x`,
		`{"a":"\ud8"}`,
		"{\"a\":\"\xff\"}", `{"edda-run":"7"}`, `{"edda-fire-due":"yesterday"}`, `{"edda-origin":"` +
			strings.Repeat("f", 4096) + `"}`,
		`{"edda-expire":"yesterday"}`, `{"edda-expire":"0s"}`, `{"edda-expire":"-1h"}`,
	} {
		err := ReadHeader([]byte(header), &saga.Info{})
		switch {
		case err == nil:
			t.Errorf("%.60q was read", header)
		case len(err.Error()) > 200 || strings.Contains(err.Error(), "yesterday"):
			t.Errorf("%.60q: the error quotes it: %.300v", header, err)
		}
	}
}

// FuzzReadHeader checks that no bytes cause a panic, and that reading gives the same result every time. If the result
// could have been written by a sender, it must be the same after it is written and read again.
func FuzzReadHeader(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `null`, `{"a":"b"}`, `{"a":"b","a":"c"}`, `{"a":"\n"}`, `{"n":1.10}`, `{"edda-version":"2"}`,
		`{"edda-intent":"reply"}`,
		`{"edda-from":"shop","edda-instance":"0190b5a0-7b7c-7cc2-8d5e-0123456789ab"}`, "{\"\xff\":\"\x00\"}",
		`{"a":"b",}`,
		`{"edda-manifest":"m","edda-run":"0190b5a0-7b7c-7cc2-8d5e-0123456789ab",` +
			`"edda-fire-due":"2026-03-29T02:30:00+01:00","edda-fire-zone":"Europe/Berlin"}`,
		`{"edda-fire-zone":"../../etc/passwd"}`,
		`{"edda-conversation":"0190b5a0-7b7c-7cc2-8d5e-0123456789ab","x":"\ud800"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		id := saga.ID{15: 1}
		first, second := saga.Info{ID: id}, saga.Info{ID: id}
		err, again := ReadHeader(header, &first), ReadHeader(header, &second)
		if (err == nil) != (again == nil) || !cmp.Equal(told(first), told(second)) {
			t.Fatalf("%q was read as %v (%v) and then as %v (%v)", header, told(first), err, told(second), again)
		}
		if err != nil || !writable(first) {
			return
		}
		out, read := AppendHeader(nil, &first), saga.Info{ID: id}
		if err := ReadHeader(out, &read); err != nil {
			t.Fatalf("%q was written as %q and cannot be read: %v", header, out, err)
		}
		if diff := cmp.Diff(told(first), told(read)); diff != "" {
			t.Fatalf("%q was written as %q (-read +read again):\n%s", header, out, diff)
		}
	})
}

// writable reports whether a sender could have written i: its names are names, and its time can be stored.
func writable(i saga.Info) bool {
	if i.From != "" && saga.CheckName(i.From) != nil {
		return false
	}
	if i.ConversationID == i.ID && (!i.RelatedTo.IsZero() && i.RelatedTo == i.ID) {
		return false // no message is related to itself
	}
	f := i.Firing
	return f == nil || saga.CheckName(f.Manifest) == nil && slices.Contains(zones, f.Due.Location().String())
}
