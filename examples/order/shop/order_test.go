package shop

import (
	"testing"
	"time"

	"github.com/edda-go/edda/sagatest"
	"github.com/google/go-cmp/cmp"
)

// The saga alone, without Postgres and in no time.
func TestOrderWithoutMoneyIsCancelled(t *testing.T) {
	t.Parallel()
	shop := sagatest.New(t, Orders(time.Hour))
	deliver(t, shop.Deliver(OrderPlaced{Order: 7, Cents: 1999}))
	deliver(t, shop.Reply(ReserveStock{Order: 7}, StockReserved{Order: 7}))
	shop.Sent()
	deliver(t, shop.Advance(time.Hour))
	want := []any{ReleaseStock{Order: 7}, OrderClosed{Order: 7, Outcome: NeverPaid}}
	if diff := cmp.Diff(want, asAny(shop.Sent())); diff != "" {
		t.Errorf("an unpaid order sends other than wanted (-) this (+):\n%s", diff)
	}
	deliver(t, shop.Deliver(CardCharged{Order: 7}))
	if diff := cmp.Diff([]any{RefundCard{Order: 7}}, asAny(shop.Sent())); diff != "" {
		t.Errorf("a charge that comes too late sends other than wanted (-) this (+):\n%s", diff)
	}
}

func TestOrderShipsWhenPaidAndReserved(t *testing.T) {
	t.Parallel()
	shop := sagatest.New(t, Orders(time.Hour))
	deliver(t, shop.Deliver(OrderPlaced{Order: 7, Cents: 1999}))
	deliver(t, shop.Reply(ChargeCard{Order: 7, Cents: 1999}, CardCharged{Order: 7}))
	if len(shop.Pending("7")) != 0 {
		t.Error("a paid order still waits for its money")
	}
	shop.Sent()
	deliver(t, shop.Reply(ReserveStock{Order: 7}, StockReserved{Order: 7}))
	if diff := cmp.Diff([]any{ShipOrder{Order: 7}}, asAny(shop.Sent())); diff != "" {
		t.Errorf("an order with money and goods sends other than wanted (-) this (+):\n%s", diff)
	}
	deliver(t, shop.Reply(ShipOrder{Order: 7}, OrderShipped{Order: 7}))
	if shop.Live("7") {
		t.Error("a shipped order is still alive")
	}
}

func deliver(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func asAny[M any](messages []M) []any {
	all := make([]any, len(messages))
	for i, m := range messages {
		all[i] = m
	}
	return all
}
