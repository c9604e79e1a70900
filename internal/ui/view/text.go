package view

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/edda-go/edda/saga"
)

// Escape returns any text on one line: unprintable characters, including bidirectional controls and bytes that are
// not UTF-8, are escaped as in Go.
func Escape(text string) string { return escaped(text, "") }

// EscapeLines is Escape for a text of several lines.
func EscapeLines(text string) string { return escaped(text, "\n") }

func escaped(text, but string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r) || strings.ContainsRune(but, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// Shortened returns the beginning of a text: its first line, and at most most characters.
func Shortened(text string, most int) string {
	line, _, more := strings.Cut(text, "\n")
	runes := []rune(line)
	if len(runes) > most {
		runes, more = runes[:most-1], true
	}
	if more {
		return string(runes) + "…"
	}
	return string(runes)
}

// Moment returns a time in UTC, to the millisecond, or "" for the zero time.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}

// span returns a duration, or "" for 0.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// took returns the duration of a handler.
func took(d time.Duration) string {
	if d < time.Second {
		return d.Round(10 * time.Microsecond).String()
	}
	return span(d)
}

// byteUnits are each 1024 of the one before; the first is 1024 bytes.
var byteUnits = []string{"kB", "MB", "GB", "TB"}

// Bytes returns a number of bytes in the form of Postgres: 1 kB is 1024 bytes.
func Bytes(n int64) string {
	value, unit := float64(n), "bytes"
	for _, name := range byteUnits {
		if value >= 1024 {
			value, unit = value/1024, name
		}
	}
	digits := 0
	if value < 10 && unit != "bytes" {
		digits = 1
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', digits, 64), ".0") + " " + unit
}

// ReadBytes parses a number of bytes like Postgres.
func ReadBytes(text string) (int64, error) {
	number, unit := text, int64(1)
	for n, name := range byteUnits {
		if len(text) > len(name) && strings.EqualFold(text[len(text)-len(name):], name) {
			number, unit = text[:len(text)-len(name)], 1<<(10*(n+1))
		}
	}
	parsed, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || parsed < 0 || parsed > math.MaxInt64/unit {
		return 0, errors.New("want a number of bytes, like 500MB or 20GB")
	}
	return parsed * unit, nil
}

func percent(part float64) string { return strconv.FormatFloat(part*100, 'g', 6, 64) + "%" }

func idText(id saga.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// numberText returns a number, or "" for 0.
func numberText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func wide(n int64) string { return strconv.FormatInt(n, 10) }

// Many returns a number with the words that follow it, which differ for 1: Many(2, "run is", "runs are") is "2 runs
// are".
func Many[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
