package settings

import "testing"

// A read that began before this process paused the endpoint returns a row without the pause. It resumed the endpoint
// for a moment, against the policy that had just paused it.
func TestLateLookDoesNotResume(t *testing.T) {
	t.Parallel()
	f := NewFollower(FollowerOptions{})
	mark := f.ownPauses()
	f.Pause("no stock", f.Now().PausedAt)
	f.accept(Settings{}, mark)
	if !f.Now().Paused || len(f.nudge) != 1 {
		t.Errorf("%+v, and %d looks are asked for", f.Now(), len(f.nudge))
	}
	f.accept(Settings{}, f.ownPauses())
	if f.Now().Paused {
		t.Error("it can not be resumed")
	}
}
