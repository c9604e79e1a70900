package run

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Calls lists the functions of the user that are running, for people who wait for them. The zero value is empty, and
// a nil one stays empty. Safe for concurrent use.
type Calls struct {
	mu    sync.Mutex
	hands map[*Hand]struct{}
	left  int // goroutines that Do has left, and that are still running
}

// Hand is a goroutine that calls functions of the user, one at a time. Enter, Return and Leave are called by that
// goroutine. The methods of a nil Hand do nothing.
type Hand struct {
	of     *Calls
	left   chan struct{} // closed when Do leaves the goroutine; nil if it never does
	within time.Duration // how long a function may run; 0 is Ends.Within

	mu   sync.Mutex // guards the fields below
	now  call       // since is zero while no function runs
	late time.Time  // when now was first found to have taken too long
	gone bool       // left is closed
}

type call struct {
	what  string
	id    [16]byte
	since time.Time
}

func (c call) String() string {
	name := c.what
	if c.id != [16]byte{} {
		name += fmt.Sprintf(" %x-%x-%x-%x-%x", c.id[:4], c.id[4:6], c.id[6:8], c.id[8:10], c.id[10:])
	}
	return fmt.Sprintf("%s for %v", name, time.Since(c.since).Round(time.Second))
}

// ErrLeft is the failure of a function of the user that has not returned in time.
var ErrLeft = errors.New("a function of the program has not returned in time, and a new worker replaces the one that " +
	"called it")

// Enter notes that the function of the user named what begins, for the message id or, if that is zero, for no
// message.
func (c *Calls) Enter(what string, id [16]byte, since time.Time) (over func()) {
	h := c.hand(nil, 0)
	h.Enter(what, id, since)
	return h.end
}

func (c *Calls) hand(left chan struct{}, within time.Duration) *Hand {
	h := &Hand{of: c, left: left, within: within}
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.hands == nil {
			c.hands = map[*Hand]struct{}{}
		}
		c.hands[h] = struct{}{}
	}
	return h
}

// end removes h from the calls.
func (h *Hand) end() {
	if h.of == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	delete(h.of.hands, h)
	if h.hasLeft() {
		h.of.left--
	}
}

func (h *Hand) hasLeft() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone
}

// Do calls f in a goroutine of its own, as Call does, and returns nil when f has returned. It returns ErrExited if a
// function of the user has ended the goroutine, and ErrLeft if a function that f has called between Enter and Return
// of its Hand has not returned in time (see Ends.Within). Then the goroutine still runs, and the data that f was
// working on belongs to the caller of Do: when the function returns, Return ends the goroutine, and its deferred
// functions, which can detect this with Leave, must not touch that data.
func (c *Calls) Do(f func(h *Hand)) error { return c.do(0, f) }

func (c *Calls) do(within time.Duration, f func(h *Hand)) error {
	h := c.hand(make(chan struct{}), within)
	done, returned := make(chan struct{}), false
	go func() {
		defer close(done)
		defer h.end()
		f(h)
		returned = true
	}()
	select {
	case <-done:
	case <-h.left:
	}
	switch {
	case h.hasLeft():
		return ErrLeft
	case !returned:
		return ErrExited
	}
	return nil
}

// Each calls f for 0 to n-1, one after the other, in a goroutine that is not the caller's. If that goroutine ends as
// described at Do, Each calls failed in the caller's goroutine, and f for the remaining numbers in a new one. A
// function of the user may run for within.
func (c *Calls) Each(within time.Duration, n int, f func(h *Hand, at int), failed func(at int, err error)) {
	for next := 0; next < n; next++ {
		at := next // belongs to this goroutine, which writes it before each call
		err := c.do(within, func(h *Hand) {
			for ; at < n; at++ {
				f(h, at)
			}
		})
		if next = at; err != nil {
			failed(at, err)
		}
	}
}

// Enter notes that the goroutine begins to call what, for the message id or, if that is zero, for no message.
func (h *Hand) Enter(what string, id [16]byte, since time.Time) {
	if h == nil {
		return
	}
	h.mu.Lock()
	gone := h.gone
	h.now, h.late = call{what, id, since}, time.Time{}
	h.mu.Unlock()
	if gone {
		runtime.Goexit()
	}
}

// Return notes that the function has returned. It ends the goroutine if Do has left it.
func (h *Hand) Return() {
	if h.Leave() {
		runtime.Goexit()
	}
}

// Leave is Return in a deferred function: it reports whether Do has left the goroutine.
func (h *Hand) Leave() (left bool) {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.since = time.Time{}
	return h.gone
}

// leave leaves the goroutine if two checks, which are every apart, find that its function has taken too long: in a
// process that stalled, the functions are about to return. It reports whether the goroutine is to be left, and which
// call.
func (h *Hand) leave(now time.Time, within, every time.Duration, may bool) (is bool, of call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.left == nil, h.gone, h.now.since.IsZero(), now.Sub(h.now.since) <= cmp.Or(h.within, within):
		return false, call{}
	case h.late.IsZero():
		h.late = now
		return false, call{}
	case now.Sub(h.late) < every:
		return false, call{}
	}
	if may {
		h.gone = true
		close(h.left)
	}
	return true, h.now
}

// leaveLate leaves the goroutines whose functions have run for longer than within, as long as fewer than most left
// goroutines are still running. It returns the calls that it has left, and the calls beyond most.
func (c *Calls) leaveLate(within, every time.Duration, most int) (left, stuck []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for h := range c.hands {
		may := c.left < most
		switch is, of := h.leave(now, within, every, may); {
		case is && may:
			c.left++
			left = append(left, of.String())
		case is:
			stuck = append(stuck, of.String())
		}
	}
	return left, stuck
}

// Left returns how many goroutines Do has left that are still running.
func (c *Calls) Left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

const mostNamed = 10

// Busy returns the names of the calls that are running, the longest first, without the calls that Do has left.
func (c *Calls) Busy() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]call, 0, len(c.hands))
	for h := range c.hands {
		h.mu.Lock()
		if !h.now.since.IsZero() && !h.gone {
			all = append(all, h.now)
		}
		h.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b call) int { return a.since.Compare(b.since) })
	for n, one := range all {
		if n == mostNamed {
			return append(names, fmt.Sprintf("%d more", len(all)-n))
		}
		names = append(names, one.String())
	}
	return names
}
