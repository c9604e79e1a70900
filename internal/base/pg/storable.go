package pg

import (
	"strings"
	"unicode/utf8"
)

// Storable returns s as a text that Postgres can store: U+FFFD replaces NUL and bytes that are not UTF-8, and the text
// is cut after at most most bytes, at the end of a rune.
func Storable(s string, most int) string {
	s = cut(s, most)
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	return cut(s, most) // a replacement is longer than the bytes that it replaces
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
