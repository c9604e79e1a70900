package bus

import (
	"testing"

	"github.com/edda-go/edda/internal/settings"
)

// A look that began before this process paused the endpoint reads a row that knows nothing of it. It resumed the
// endpoint for a moment, against the policy that had just paused it.
func TestLateLookDoesNotResume(t *testing.T) {
	t.Parallel()
	k := newKnobs(1, 1)
	mark := k.ownPauses()
	k.pause("no stock", k.now().PausedAt)
	k.turn(settings.Settings{}, mark)
	if !k.now().Paused || len(k.look) != 1 {
		t.Errorf("%+v, and %d looks are asked for", k.now(), len(k.look))
	}
	k.turn(settings.Settings{}, k.ownPauses())
	if k.now().Paused {
		t.Error("it can not be resumed")
	}
}
