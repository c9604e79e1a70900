package comparison

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

func placed(t *testing.T) *sagatest.Run {
	t.Helper()
	r := sagatest.New(t, Orders)
	check(t, r.Deliver(PlaceOrder{Order: "7", Cents: 1990}))
	r.Sent()
	return r
}

func TestPaidOrderEndsWithItsTimeout(t *testing.T) {
	r := sagatest.New(t, Orders)
	check(t, r.Deliver(PlaceOrder{Order: "7", Cents: 1990}))
	check(t, r.Reply(ChargeCard{Cents: 1990}, CardCharged{}))
	check(t, r.Advance(24*time.Hour))
	last := r.Sent()
	if len(last) != 2 || last[1] != (saga.Message)(OrderPaid{Order: "7"}) {
		t.Errorf("sent %v, want ChargeCard and OrderPaid", last)
	}
}

func TestUnpaidOrderIsCancelled(t *testing.T) {
	r := placed(t)
	check(t, r.Advance(24*time.Hour))
	if sent := r.Sent(); len(sent) != 1 || sent[0] != (saga.Message)(OrderCancelled{Order: "7"}) || r.Live("7") {
		t.Errorf("sent %v, want OrderCancelled", sent)
	}
}

// office is a post that loses the first letter.
type office struct {
	tried   atomic.Int32
	written chan string // keys, and the addresses of letters that were not lost
}

func (o *office) write(_ context.Context, key, email string) error {
	o.written <- key
	if o.tried.Add(1) == 1 {
		return errors.New("the first letter is lost")
	}
	o.written <- email
	return nil
}

// A letter is written for a member whose transaction has committed, and again under the same key after a failure.
func TestLetterIsWrittenForAMember(t *testing.T) {
	pool := eddatest.Pool(t)
	b, err := bus.New(pool, bus.Options{})
	check(t, err)
	post := &office{written: make(chan string, 10)}
	mail, err := letters(b, post)
	check(t, err)
	sales, err := bus.NewEndpoint(b, "sales", bus.EndpointOptions{}, bus.HandleTx(count))
	check(t, err)
	host, err := edda.NewHost(mail, sales)
	check(t, err)
	check(t, host.Install(t.Context()))
	_, err = pool.Exec(t.Context(), "CREATE TABLE member (email text PRIMARY KEY); CREATE TABLE sale (number text)")
	check(t, err)
	check(t, b.InTx(t.Context(), func(tx pgx.Tx) error { return register(t.Context(), b, tx, "ann@example.org") }))
	if err := b.InTx(t.Context(), func(tx pgx.Tx) error {
		return register(t.Context(), b, tx, "ann@example.org") // she is a member already
	}); err == nil {
		t.Error("a member was registered twice")
	}
	operator, err := operate.New(pool, operate.Options{})
	check(t, err)
	queues, err := operator.Queues().List(t.Context())
	check(t, err)
	for _, q := range queues {
		if want := map[string]int64{"letters": 1}[q.Endpoint]; q.Delayed != want {
			t.Errorf("%d messages are delayed in %s, want %d", q.Delayed, q.Endpoint, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	_, err = b.Publish(t.Context(), OrderPaid{Order: "7"})
	check(t, err)
	first, again, email := <-post.written, <-post.written, <-post.written
	if first != again || email != "7@example.org" {
		t.Errorf("written under %s and %s to %s", first, again, email)
	}
	stop()
	check(t, <-ended)
	var sold int
	check(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM sale`).Scan(&sold))
	if sold != 1 {
		t.Errorf("%d sales, want 1", sold)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
