package saga

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// stamp calls Outgoing, and adds the headers that it set to those of the message.
func (rt *Runtime) stamp(ctx context.Context, i *Info) error {
	seen := *i
	seen.headers, seen.places = slices.Clone(i.headers), maps.Clone(i.places)
	if err := callOutgoing(ctx, rt.Outgoing, &seen); err != nil {
		return fmt.Errorf("%s: Outgoing: %w", i.Kind, err)
	}
	before := len(i.headers)
	for _, h := range seen.headers {
		if i.place(h.name) >= 0 {
			continue
		}
		if err := checkHeader(h.name, h.value); err != nil {
			return fmt.Errorf("%s: Outgoing: %w", i.Kind, err)
		}
		i.AddHeader(h.name, h.value)
	}
	if len(i.headers) == before {
		return nil
	}
	if err := rt.checkHeaders(len(i.headers), i.Headers()); err != nil {
		return fmt.Errorf("%s: Outgoing: %w", i.Kind, err)
	}
	return nil
}

func callOutgoing(ctx context.Context, outgoing func(context.Context, *Info), i *Info) (err error) {
	defer caught(&err)
	outgoing(ctx, i)
	return nil
}

// stampFailed records why a message cannot be sent. After a panic the step fails with it, whatever the handler returns.
func stampFailed(c *Context, err error) {
	var panicked *PanicError
	if !errors.As(err, &panicked) {
		c.fault("%w", err)
	} else if !c.panicked {
		c.panicked, c.faults = true, slices.Insert(c.faults, 0, err)
	}
}

func (rt *Runtime) checkHeaders(n int, all iter.Seq2[string, string]) error {
	if n > rt.Limits.maxHeaders() {
		return fmt.Errorf("%d headers, limit %d: %w", n, rt.Limits.maxHeaders(), ErrTooLarge)
	}
	sum := 0
	for name, value := range all {
		if limit := rt.Limits.maxHeader(); len(name) > limit {
			return fmt.Errorf("a header has a name of %d bytes, limit %d: %w", len(name), limit, ErrTooLarge)
		} else if len(value) > limit {
			return fmt.Errorf("header %.80q with a value of %d bytes, limit %d: %w", name, len(value), limit,
				ErrTooLarge)
		}
		sum += len(name) + len(value)
	}
	if limit := rt.Limits.headerBytes(); sum > limit {
		return fmt.Errorf("headers of %d bytes together, limit %d: %w", sum, limit, ErrTooLarge)
	}
	return nil
}
