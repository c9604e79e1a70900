package lease

import (
	_ "embed"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

//go:embed hold.go
var holdSource string

// A term cancels its work by a context of the standard library, and so needs no other module. The pauses between
// renewals come from cenkalti's module.
func TestTermsAreCancelledByContexts(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "hold.go", holdSource, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range file.Imports {
		switch path := strings.Trim(one.Path.Value, `"`); {
		case !strings.Contains(path, "."), strings.HasPrefix(path, "github.com/edda-go/edda/"):
		case path != "github.com/cenkalti/backoff/v4":
			t.Errorf("hold.go imports %s", path)
		}
	}
}
