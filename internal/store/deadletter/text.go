package deadletter

import (
	"fmt"

	"github.com/edda-go/edda/internal/base/pg"
)

// MaxText is the largest size in bytes of a stored reason or error.
const MaxText = 8 << 10

// Storable returns s as a text that Postgres can store: U+FFFD replaces NUL and bytes that are not UTF-8, and the
// text is cut at the end of a rune, after at most MaxText bytes.
func Storable(s string) string { return pg.Storable(s, MaxText) }

// ErrorText returns the text of an error, or "" for nil. If the Error method of a user's error panics, the text
// describes that panic. For a panic the text includes the innermost functions, with file and line.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprint(err)
	if e, ok := err.(interface{ PanicStack() string }); ok && e.PanicStack() != "" {
		text = pg.Storable(text, MaxText/2) + "\n" + e.PanicStack()
	}
	return text
}
