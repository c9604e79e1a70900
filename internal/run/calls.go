package run

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Calls are the functions of the user that run now, for people who wait for them. The zero value is empty, and a nil
// one stays so. Safe for concurrent use.
type Calls struct {
	mu  sync.Mutex
	now map[any]call // by who calls: each calls one function at a time
}

type call struct {
	what  string
	id    [16]byte
	since time.Time
}

// Enter notes that who calls what, for the message id or, when that is zero, for none.
func (c *Calls) Enter(who any, what string, id [16]byte, since time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		c.now = map[any]call{}
	}
	c.now[who] = call{what, id, since}
}

// Leave notes that the function which who has called has returned, or has ended its goroutine.
func (c *Calls) Leave(who any) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.now, who)
}

const mostNamed = 10

// Busy names the calls that run now, the longest first.
func (c *Calls) Busy() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]call, 0, len(c.now))
	for _, one := range c.now {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b call) int { return a.since.Compare(b.since) })
	for n, one := range all {
		if n == mostNamed {
			return append(names, fmt.Sprintf("%d more", len(all)-n))
		}
		name := one.what
		if one.id != [16]byte{} {
			name += fmt.Sprintf(" %x-%x-%x-%x-%x", one.id[:4], one.id[4:6], one.id[6:8], one.id[8:10], one.id[10:])
		}
		names = append(names, fmt.Sprintf("%s for %v", name, time.Since(one.since).Round(time.Second)))
	}
	return names
}
