package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddatest"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// The program runs twice, on the same databases and the same broker.
func TestEveryOrderIsPaidOnceInTheOtherDatabase(t *testing.T) {
	t.Setenv("ORDERS_DATABASE_URL", eddatest.DSN(t))
	t.Setenv("PAYMENTS_DATABASE_URL", eddatest.DSN(t))
	folder := t.TempDir()
	for range 2 {
		var out bytes.Buffer
		if err := run(t.Context(), folder, 40, &out); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		said := out.String()
		if !strings.Contains(said, "orders=40 paid=36 declined=4 shipped=36") {
			t.Errorf("the sum is not told, or not as it should be:\n%s", said)
		}
		for _, step := range []string{"orders    placed",
			"orders    card.charge is given to the broker, topic payments",
			"payments  card.charge is handled by endpoint payments", "orders    order.paid is handled by endpoint page",
			"payments  order.paid is handled by endpoint shipping"} {
			if !regexp.MustCompile(fmt.Sprintf(`\d  %s`, regexp.QuoteMeta(step))).MatchString(said) {
				t.Errorf("it was not told that %q:\n%s", step, said)
			}
		}
	}
}

func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	right := counts{toldPaid: 2, toldDeclined: 1, charged: 2, declined: 1, shipped: 2}
	if !right.fine(3) || !right.resting(3) {
		t.Errorf("%+v is not fine", right)
	}
	for what, change := range map[string]func(*counts){
		"no end":                             func(c *counts) { c.toldPaid-- },
		"paid twice":                         func(c *counts) { c.charged++ },
		"shipped twice":                      func(c *counts) { c.shipped++ },
		"declined, and told that it is paid": func(c *counts) { c.toldPaid++; c.toldDeclined-- },
	} {
		wrong := right
		if change(&wrong); wrong.fine(3) {
			t.Errorf("%s: %+v is fine", what, wrong)
		}
	}
}
