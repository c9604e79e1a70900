package message

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/store/queue"
)

// pauses returns the shortest and the longest of many waits of a message of this age for a newer program.
func pauses(age time.Duration) (least, most time.Duration) {
	now := time.Now()
	d := &Decoder{Tally: Tally{DBTime: DBTime{Now: now}}}
	m := &Message{Row: queue.Row{Sent: now.Add(-age)}}
	least = time.Hour
	for range 1000 {
		pause := d.newerPause(m)
		least, most = min(least, pause), max(most, pause)
	}
	return least, most
}

// A fresh message meets the newer program within seconds; a message that has waited long is taken once a minute.
// Waits differ, so that the same program is not the first again and again.
func TestWaitForANewerProgramGrows(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]time.Duration{
		0: time.Second, 3 * time.Second: time.Second, 40 * time.Second: 10 * time.Second, 4 * time.Minute: time.Minute,
		24 * time.Hour: time.Minute, -time.Second: time.Minute, -24 * time.Hour: time.Minute,
	} {
		if least, most := pauses(age); least < want*3/4 || least > want*4/5 || most > want || most < want*19/20 {
			t.Errorf("a message of %v waits from %v to %v, want three quarters of %v to all of it", age, least, most,
				want)
		}
	}
}

// Each take writes the row anew. A million waiting messages must not keep the database busy.
func TestFewLooksAtAMessageThatWaitsForANewerProgram(t *testing.T) {
	t.Parallel()
	looks := map[time.Duration]int{}
	for _, until := range []time.Duration{4 * time.Minute, time.Hour} {
		for age := time.Duration(0); age < until; looks[until]++ {
			least, _ := pauses(age)
			age += least
		}
	}
	if looks[4*time.Minute] > 30 || looks[time.Hour] > 110 {
		t.Errorf("a message is looked at %d times in four minutes and %d times in an hour, want 30 and 110 at most",
			looks[4*time.Minute], looks[time.Hour])
	}
}
