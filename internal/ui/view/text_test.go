package view

import (
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain é 漢 🙂":                   "plain é 漢 🙂",
		"a\x1b[2Jb\r\n\tc":              `a\x1b[2Jb\r\n\tc`,
		"\u202egnp.exe\u2066\u200b":     `\u202egnp.exe\u2066\u200b`,
		"\x9b2J \xc2\x9b2J \xff":        `\x9b2J \u009b2J \xff`,
		"\u00a0\ufeff\U000e0041":        `\u00a0\ufeff\U000e0041`,
		"\x00\x7f":                      `\x00\x7f`,
		"replaced \ufffd stays visible": "replaced \ufffd stays visible",
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got, want := EscapeLines("a\n\x1bb\r\n"), "a\n\\x1bb\\r\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := escapeJSON("{\n\t\"a\": \"\u009b \u202e \U000e0041\"\n}\n"), "{\n \"a\": \"\\u009b \\u202e "+
		"\\udb40\\udc41\"\n}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("x", 2*3600)
	for _, c := range []struct{ got, want string }{
		{Shortened("漢字漢字", 4), "漢字漢字"}, {Shortened("漢字漢字漢", 4), "漢字漢…"}, {Shortened("one\ntwo", 9), "one…"},
		{Moment(time.Time{}), ""}, {Moment(someTime.In(zone)), "2026-11-21 10:00:00.000Z"},
		{span(0), ""}, {span(1234567 * time.Nanosecond), "1ms"}, {span(90500 * time.Millisecond), "1m31s"},
		{span(26*time.Hour + 29*time.Second), "26h0m"}, {took(1234567 * time.Nanosecond), "1.23ms"},
		{Bytes(0), "0 bytes"}, {Bytes(1023), "1023 bytes"}, {Bytes(1024), "1 kB"}, {Bytes(1536), "1.5 kB"},
		{Bytes(20 << 30), "20 GB"}, {Body([]byte(`{"a":1}`)), "{\n  \"a\": 1\n}"}, {Body([]byte("a{")), "a{"},
		{bodyOf([]byte("é"))[0].(string), "body"}, {bodyOf([]byte{0xff})[0].(string), "body_base64"},
		{percent(0.1), "10%"}, {Many(1, "run is", "runs are"), "1 run is"},
		{Many(0, "run is", "runs are"), "0 runs are"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestReadBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "12": 12, "1kB": 1024, "20 gb": 20 << 30, "500MB": 500 << 20} {
		if got, err := ReadBytes(text); err != nil || got != want {
			t.Errorf("%s: got %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GB", "-1", "1.5GB", "9999999TB", "12 XB"} {
		if got, err := ReadBytes(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestReadPlace(t *testing.T) {
	t.Parallel()
	if got := PlaceText(someTime, someID); got != somePlace {
		t.Errorf("got %s, want %s", got, somePlace)
	}
	if at, id, err := ReadPlace(somePlace); err != nil || !at.Equal(someTime) || id != someID {
		t.Errorf("%v %v %v", at, id, err)
	}
	if at, id, err := ReadPlace(""); err != nil || !at.IsZero() || id != (saga.ID{}) {
		t.Errorf("%v %v %v", at, id, err)
	}
	for _, text := range []string{"2026-11-21T10:00:00Z", "x/" + someID.String(), somePlace + "0"} {
		if _, _, err := ReadPlace(text); err == nil {
			t.Errorf("%s is a place", text)
		}
	}
}
