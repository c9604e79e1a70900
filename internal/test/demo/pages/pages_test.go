package pages_test

import (
	"testing"

	"github.com/edda-go/edda/internal/test/demo/pages"
)

// Visitors have every right, so no address of other machines is served.
func TestOnlyThisMachineIsServed(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:0": true, "localhost:7433": true, "[::1]:0": true,
		"0.0.0.0:7433": false, ":7433": false, "[::]:0": false, "10.0.0.5:7433": false, "edda.example:7433": false,
		"": false,
	} {
		if err := pages.Check(address); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
		if want {
			continue
		}
		if s, err := pages.Open(t.Context(), address, nil, "edda"); err == nil {
			t.Errorf("%q is served: %v", address, s.Close())
		}
	}
}
