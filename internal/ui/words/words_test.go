package words

import (
	"math"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 700 * time.Nanosecond: "1 µs", 240 * time.Microsecond: "240 µs", 1400 * time.Microsecond: "1.4 ms",
		94 * time.Millisecond: "94 ms", 4200 * time.Millisecond: "4.2 s", 42 * time.Second: "42 s",
		8*time.Minute + 59*time.Second: "8 min", 192 * time.Minute: "3 h 12 min", 3 * time.Hour: "3 h",
		50 * time.Hour: "2 days", -8 * time.Minute: "-8 min",
		math.MinInt64: "-106751 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1204: "1,204", -1234567: "-1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if one, many := Of(1, "cause"), Of(1204, "cause"); one != "1 cause" || many != "1,204 causes" {
		t.Errorf("%q, %q", one, many)
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 14, 2, 11, 0, time.UTC)
	for d, want := range map[time.Duration][3]string{
		-8 * time.Minute: {"8 min ago", "8 min", "13:54:11"}, -time.Second: {"just now", "under 1 min", "14:02:10"},
		time.Second: {"in a moment", "under 1 min", "14:02:12"}, 23 * time.Hour: {"in 23 h", "under 1 min",
			"27 Nov 13:02:11"},
		-9000 * time.Hour: {"375 days ago", "375 days", "2025-11-16 14:02:11"},
	} {
		at := now.Add(d)
		if got := [3]string{Ago(at, now), Age(at, now), Clock(at, now)}; got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"order": "order", "2026-0007": "2026-0007", "night/settle": "night/settle", "": "''", "a b": "'a b'",
		"it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a\nb": "'a\nb'", "bäcker": "bäcker",
	} {
		if got := Quoted(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestEveryStateHasAShape(t *testing.T) {
	t.Parallel()
	for _, state := range []string{
		"waiting", "delayed", "retrying", "in hand", "parked", "dead", "discarded", "handled", "relayed", "ingested",
		"cancelled", "paused", "living", "completed", "running", "died", "active", "queued", "succeeded", "timed_out",
		"live", "held", "orphan", "lost", "skipped",
	} {
		if ShapeOf(state).Drawing == "question" {
			t.Errorf("%s has no shape", state)
		}
	}
	if ShapeOf("gone").Drawing != "question" {
		t.Error("what is not known is no question")
	}
}
