package option

import (
	"testing"
	"time"
)

func TestZeroIsTheDefaultAndFaultsComeTogether(t *testing.T) {
	t.Parallel()
	var f Faults
	rows, most, lease, poll := 0, 200, 15*time.Minute, -time.Second
	f.Int("Rows", &rows, 50, 1, 100)
	f.Int("Most", &most, 50, 1, 100)
	f.Duration("Lease", &lease, time.Second, time.Second, time.Hour)
	f.Duration("Poll", &poll, time.Second, 0, time.Hour)
	f.Add(nil)
	if rows != 50 || lease != 15*time.Minute {
		t.Errorf("rows %d, lease %v", rows, lease)
	}
	const want = "Most is 200, want 1 to 100 (0 is the default, 50)\n" +
		"Poll is -1s, want 0s to 1h0m0s (0 is the default, 1s)"
	if err := f.Err(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := new(Faults).Err(); err != nil {
		t.Error(err)
	}
}
