package deadletter

import (
	"fmt"

	"github.com/edda-go/edda/internal/base/pg"
)

// MaxText is how many bytes of a reason or an error are kept.
const MaxText = 8 << 10

// Storable returns s as a text that Postgres can store: U+FFFD replaces NUL and bytes that are not UTF-8, and the text
// is cut after at most MaxText bytes, at the end of a rune.
func Storable(s string) string { return pg.Storable(s, MaxText) }

// ErrorText returns the text of an error, "" of none. The Error method of a user's error may panic; the text then says
// so. Of a panic it has the innermost functions, with file and line, too.
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
