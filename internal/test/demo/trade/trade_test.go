package trade

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/examples/order/shop"
	"github.com/edda-go/edda/internal/test/demo"
	"github.com/edda-go/edda/internal/test/pgdev"
)

// The whole program, shorter: 1,100 orders have each of the things that go wrong.
func TestProgram(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := Run(t.Context(), Settings{Orders: 1100, Rate: 1100, PayWithin: time.Second, Within: 2 * time.Minute,
		Pages: "127.0.0.1:0"}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"orders=1100 wrong=0", " shipped\n", shop.CardDenied, shop.NeverPaid,
		"the first dead letter: card.charge in payment"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the program did not print %q:\n%s", want, out.String())
		}
	}
	_, told, _ := strings.Cut(out.String(), "The history of order 7:\n")
	for _, want := range []string{"began       order.placed", "→ card.charge, stock.reserve", "card.refused",
		"order.closed\n", "edda history show order 7\n"} {
		if !strings.Contains(told, want) {
			t.Errorf("the story of order 7 has no %q:\n%s", want, told)
		}
	}
}

// The pages of the shop are open while it runs and, with Stay, when all orders have ended.
func TestPagesStay(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Run(ctx, Settings{Orders: 20, Rate: 20, PayWithin: time.Second, Within: time.Minute,
			Pages: "127.0.0.1:0", Stay: true}, out)
		_ = out.CloseWithError(err)
		ended <- err
	}()
	url, lines := "", bufio.NewScanner(printed)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "in a browser: "); ok {
			url = at
		}
		if strings.HasPrefix(lines.Text(), "The pages stay until Ctrl-C") {
			break
		}
	}
	if err := lines.Err(); err != nil || url == "" {
		t.Fatalf("no address was printed: %v", err)
	}
	response, err := http.Get(url + "sagas/order/7")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || !strings.Contains(string(page), "card.refused") {
		t.Errorf("the page of order 7: %s\n%s", response.Status, page)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The check must detect every kind of wrong order.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx, own := t.Context(), pgdev.Schema(t)
	d, err := demo.Connect(ctx, pgdev.DSN(t), own, "test")
	if err != nil {
		t.Fatal(err)
	}
	pool := d.Pool
	defer pool.Close()
	if err := d.Create(ctx, shop.Tables); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Drop(ctx); err != nil {
			t.Error(err)
		}
	}()
	_, err = pool.Exec(ctx, `
		INSERT INTO placed VALUES (1, 5), (2, 5), (3, 5), (4, 5), (5, 5), (6, 5);
		INSERT INTO charge VALUES (1, 5), (2, 5), (2, 5), (3, 5), (5, 5);
		INSERT INTO refund VALUES (3);
		INSERT INTO reservation VALUES (1, 'hat'), (2, 'hat'), (3, 'hat'), (4, 'hat'), (5, 'hat');
		INSERT INTO release VALUES (3), (4), (5);
		INSERT INTO shipment VALUES (1), (2);
		INSERT INTO outcome VALUES (1, 'shipped'), (2, 'shipped'), (3, 'cancelled'), (4, 'cancelled'), (5,
		'cancelled'), (7, 'shipped')`)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := check(ctx, pool, 6, &out); err == nil {
		t.Error("the check found nothing wrong")
	}
	for _, want := range []string{"order 2 is shipped", "order 5 is cancelled", "order 6 is open", "order 7 is shipped",
		"orders=7 wrong=4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the check did not print %q:\n%s", want, out.String())
		}
	}
}

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	right := Settings{Orders: 1, Rate: 20, PayWithin: time.Second, Within: time.Minute}
	for flag, change := range map[string]func(*Settings){
		"":             func(*Settings) {},
		"--orders":     func(s *Settings) { s.Orders = 0 },
		"--rate":       func(s *Settings) { s.Rate = 3 },
		"--pay-within": func(s *Settings) { s.PayWithin = time.Millisecond },
		"--within":     func(s *Settings) { s.Within = 0 },
	} {
		s := right
		change(&s)
		if err := s.Check(); (err == nil) != (flag == "") || err != nil && !strings.Contains(err.Error(), flag) {
			t.Errorf("%q: %v", flag, err)
		}
	}
}
