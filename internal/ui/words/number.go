package words

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Count writes a number with a comma before each group of three digits.
func Count(n int64) string {
	if n < 0 {
		return "-" + Count(-n)
	}
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Of writes a number with its noun, in the singular for 1: Of(2, "message") is "2 messages".
func Of(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Span writes a duration for people, with one or two units: "1.4 ms", "8 min", "3 h 12 min", "2 days".
func Span(d time.Duration) string {
	if d < 0 {
		return "-" + Span(-max(d, -math.MaxInt64)) // the smallest duration has no positive counterpart
	}
	switch {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Round(time.Microsecond).Microseconds(), 10) + " µs"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return hours(d)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func hours(d time.Duration) string {
	if minutes := int(d.Minutes()) % 60; minutes > 0 {
		return fmt.Sprintf("%d h %d min", int(d.Hours()), minutes)
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

// Ago returns how long before now a time was, or how long after now it will be. Below a minute it does not count
// seconds.
func Ago(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case d < -time.Minute:
		return "in " + Span(-d)
	case d < 0:
		return "in a moment"
	case d < time.Minute:
		return "just now"
	}
	return Span(d) + " ago"
}

// Age returns how long ago a time was. Below a minute it does not count seconds.
func Age(t, now time.Time) string {
	if d := now.Sub(t); d >= time.Minute {
		return Span(d)
	}
	return "under 1 min"
}

// Clock returns a time in UTC: its time of day, with the date before it unless it is the date of now.
func Clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	switch {
	case t.Year() != now.Year():
		return t.Format("2006-01-02 15:04:05")
	case t.YearDay() != now.YearDay():
		return t.Format("2 Jan 15:04:05")
	}
	return t.Format("15:04:05")
}

// Exact returns a time in UTC, to the millisecond.
func Exact(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }
