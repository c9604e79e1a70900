package deadletter

import (
	"strings"
	"unicode/utf8"
)

// MaxText is how many bytes of a reason or an error are kept.
const MaxText = 8 << 10

// Storable returns s as a text that Postgres can store: U+FFFD replaces NUL and bytes that are not UTF-8, and the text
// is cut after at most MaxText bytes, at the end of a rune.
func Storable(s string) string {
	s = cut(s)
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	return cut(s) // a replacement is longer than what it replaces
}

func cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText
	for end > MaxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
