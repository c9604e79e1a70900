package words

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain returns a text that came from anywhere on one line: whatever is not printable, bidirectional controls and bytes
// that are not UTF-8 included, is spelt as Go spells it.
func Plain(text string) string { return spelt(text, "") }

// Lines is Plain for a text of several lines.
func Lines(text string) string { return spelt(text, "\n") }

func spelt(text, but string) string {
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

// Short keeps the beginning of the first line of a text, at most so many characters.
func Short(text string, most int) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(line)
	if len(runes) > most {
		runes, more = runes[:most-1], true
	}
	if more {
		return string(runes) + "…"
	}
	return string(runes)
}

// Quoted quotes a text for a shell if it needs that.
func Quoted(text string) string {
	if text != "" && strings.IndexFunc(text, special) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%+,=", r)
}
