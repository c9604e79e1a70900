package saga

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// stamp calls Outgoing, and adds the headers that it set to the message.
func (rt *Runtime) stamp(ctx context.Context, i *Info) error {
	seen, ok := infos.Get().(*Info)
	if !ok {
		seen = new(Info)
	}
	headers := append(seen.headers[:0], i.headers...)
	*seen = *i
	seen.headers, seen.places = headers, maps.Clone(i.places)
	if err := callOutgoing(ctx, rt.Outgoing, seen); err != nil {
		return fmt.Errorf("%s: Outgoing: %w", i.Kind, err)
	}
	err := rt.addHeaders(i, seen.headers)
	if cap(seen.headers) <= fewHeaders {
		clear(seen.headers)
		*seen = Info{headers: seen.headers[:0]}
		infos.Put(seen)
	}
	if err != nil {
		return fmt.Errorf("%s: Outgoing: %w", i.Kind, err)
	}
	return nil
}

// infos keeps Infos that Outgoing has used, for reuse: Outgoing must not keep them.
var infos sync.Pool

// addHeaders adds the headers that i does not have.
func (rt *Runtime) addHeaders(i *Info, more []header) error {
	before := len(i.headers)
	for _, h := range more {
		if i.place(h.name) >= 0 {
			continue
		}
		if err := checkHeader(h.name, h.value); err != nil {
			return err
		}
		i.AddHeader(h.name, h.value)
	}
	if len(i.headers) == before {
		return nil
	}
	var n headerTally
	for _, h := range i.headers {
		if err := n.add(&rt.Limits, h.name, h.value); err != nil {
			return err
		}
	}
	return n.check(&rt.Limits)
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

func (rt *Runtime) checkHeaders(h map[string]string) error {
	var n headerTally
	for name, value := range h {
		if err := n.add(&rt.Limits, name, value); err != nil {
			return err
		}
	}
	return n.check(&rt.Limits)
}

// headerTally counts the headers of one message.
type headerTally struct{ count, bytes int }

func (n *headerTally) add(l *Limits, name, value string) error {
	if limit := l.maxHeader(); len(name) > limit {
		return fmt.Errorf("a header has a name of %d bytes, limit %d: %w", len(name), limit, ErrTooLarge)
	} else if len(value) > limit {
		return fmt.Errorf("header %.80q with a value of %d bytes, limit %d: %w", name, len(value), limit,
			ErrTooLarge)
	}
	n.count++
	n.bytes += len(name) + len(value)
	return nil
}

func (n *headerTally) check(l *Limits) error {
	if n.count > l.maxHeaders() {
		return fmt.Errorf("%d headers, limit %d: %w", n.count, l.maxHeaders(), ErrTooLarge)
	}
	if limit := l.headerBytes(); n.bytes > limit {
		return fmt.Errorf("headers of %d bytes together, limit %d: %w", n.bytes, limit, ErrTooLarge)
	}
	return nil
}
