package wire

import (
	"strings"
	"testing"
)

func TestTraceIDOfATraceparent(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for parent, want := range map[string]string{
		"00-" + trace + "-" + span + "-01":                    trace,
		"00-" + trace + "-" + span + "-00":                    trace,
		"cc-" + trace + "-" + span + "-01-later":              trace,
		"cc-" + trace + "-" + span + "-01later":               "",
		"00-" + trace + "-" + span + "-01-later":              "",
		"ff-" + trace + "-" + span + "-01":                    "",
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   "",
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  "",
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": "",
		"00-" + trace + "_" + span + "-01":                    "",
		"00-" + trace[1:] + "g-" + span + "-01":               "",
		"00-" + trace + "-" + span + "-0\n":                   "",
		"00-" + trace + "-" + span:                            "",
		strings.Repeat("\xff", 55):                            "",
		"":                                                    "",
	} {
		if got := traceID(parent); got != want {
			t.Errorf("%q: %q, want %q", parent, got, want)
		}
	}
}
