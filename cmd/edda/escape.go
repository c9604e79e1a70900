package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escape shows a text that came from anywhere on one line of a terminal: whatever is not printable, bidirectional
// controls and bytes that are not UTF-8 included, is spelt as Go spells it.
func escape(text string) string { return escaped(text, "") }

// escapeLines is escape for a text of several lines.
func escapeLines(text string) string { return escaped(text, "\n") }

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

// escapeJSON spells what is not printable in a JSON text as JSON does. Outside its strings a JSON text has only
// printable characters and white space, so the value stays the same.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			b.WriteRune(r)
		case r == '\t' || r == '\r': // between tokens: inside a string they are escaped already
			b.WriteByte(' ')
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// shortened keeps the beginning of a text for a cell of a table.
func shortened(text string, most int) string {
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
