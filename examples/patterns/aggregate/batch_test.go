package aggregate

import (
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/sagatest"
)

// pay delivers the payments with the numbers from first to last.
func pay(t *testing.T, r *sagatest.Run, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		if err := r.Deliver(Pay{Bank: "b", Payment: Payment{ID: fmt.Sprint(n), Cents: n}}); err != nil {
			t.Fatal(err)
		}
	}
}

// wantFiles checks the sizes of the requested files.
func wantFiles(t *testing.T, r *sagatest.Run, sizes ...int) {
	t.Helper()
	sent := r.Sent()
	if len(sent) != len(sizes) {
		t.Fatalf("%d files are asked for, want %d", len(sent), len(sizes))
	}
	for i, m := range sent {
		if file, ok := m.(WriteFile); !ok || file.Bank != "b" || len(file.Payments) != sizes[i] {
			t.Errorf("file %d: %v, want %d payments", i, m, sizes[i])
		}
	}
}

func TestFullBatchIsAFile(t *testing.T) {
	t.Parallel()
	r := sagatest.New(t, Batches)
	pay(t, r, 1, most-1)
	wantFiles(t, r)
	pay(t, r, most, most+1)
	wantFiles(t, r, most)
	if b := sagatest.State[Batch](r, "b"); len(b.Payments) != 1 {
		t.Errorf("the next batch has %d payments, want 1", len(b.Payments))
	}
}

func TestBatchIsAFileWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	r := sagatest.New(t, Batches)
	pay(t, r, 1, 1)
	if err := r.Advance(longest - time.Millisecond); err != nil {
		t.Fatal(err)
	}
	pay(t, r, 2, 2)
	wantFiles(t, r)
	if err := r.Advance(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, r, 2)
}

// The timeout of a batch that was full does not end the next one.
func TestTimeoutOfAFullBatchIsCancelled(t *testing.T) {
	t.Parallel()
	r := sagatest.New(t, Batches)
	pay(t, r, 1, most)
	wantFiles(t, r, most)
	if err := r.Advance(longest - time.Millisecond); err != nil {
		t.Fatal(err)
	}
	pay(t, r, most+1, most+1)
	if err := r.Advance(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, r)
}

func TestPaymentThatIsSentTwiceIsPaidOnce(t *testing.T) {
	t.Parallel()
	r := sagatest.New(t, Batches)
	pay(t, r, 1, 1)
	pay(t, r, 1, 2)
	if err := r.Advance(longest); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, r, 2)
}
