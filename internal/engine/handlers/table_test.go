package handlers

import (
	"context"
	"errors"
	"testing"

	"github.com/edda-go/edda/saga"
)

func delivery(n byte) *saga.Delivery {
	return &saga.Delivery{Info: saga.Info{ID: saga.ID{15: n}, Kind: "placed"}, Body: []byte{n}}
}

// A delivery that middleware received is reused, but not while a call that the middleware has left is still running.
func TestDeliveryOfACallThatRunsOn(t *testing.T) {
	left := errors.New("left")
	ended := make(chan error, 1)
	leaving := &Table{Middleware: []func(Next) Next{func(next Next) Next {
		return func(ctx context.Context, d *saga.Delivery) error {
			begun := make(chan struct{})
			go func() { ended <- next(context.WithValue(ctx, begunKey{}, begun), d) }()
			<-begun
			return left
		}
	}}}
	staying := &Table{Middleware: []func(Next) Next{func(next Next) Next { return next }}}
	goOn := make(chan struct{})
	err := leaving.Around(t.Context(), delivery(1), func(ctx context.Context, d *saga.Delivery) error {
		begun, _ := ctx.Value(begunKey{}).(chan struct{})
		close(begun)
		<-goOn
		if d.Info.ID != (saga.ID{15: 1}) || len(d.Body) != 1 || d.Body[0] != 1 {
			return errors.New("the delivery has changed")
		}
		return nil
	})
	if !errors.Is(err, left) {
		t.Fatal(err)
	}
	for n := range byte(10) {
		err := staying.Around(t.Context(), delivery(n+2), func(_ context.Context, d *saga.Delivery) error {
			if d.Info.ID != (saga.ID{15: n + 2}) || d.Body[0] != n+2 {
				t.Errorf("the delivery is that of %v", d.Info.ID)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type begunKey struct{}

// A handler may keep the body that it received.
func TestBodyIsNotUsedAgain(t *testing.T) {
	h := &Table{Middleware: []func(Next) Next{func(next Next) Next { return next }}}
	var kept [][]byte
	for n := range byte(10) {
		err := h.Around(t.Context(), delivery(n), func(_ context.Context, d *saga.Delivery) error {
			kept = append(kept, d.Body)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range kept {
		_ = append(body, 'x') // must not write into the next body
	}
	for n, body := range kept {
		if len(body) != 1 || int(body[0]) != n {
			t.Errorf("body %d is %v", n, body)
		}
	}
}
