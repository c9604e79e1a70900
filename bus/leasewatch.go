package bus

import "strings"

// leaseWatch is somebody who wants to know of leases whose names begin alike.
type leaseWatch struct {
	prefix string
	wake   func(name string)
}

// watchLeases calls wake for notifications about leases under prefix, until stop is called. wake must not block.
func (h *hub) watchLeases(prefix string, wake func(name string)) (stop func()) {
	w := &leaseWatch{prefix: prefix, wake: wake}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches = append(h.watches, w)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, other := range h.watches {
			if other == w {
				h.watches = append(h.watches[:i:i], h.watches[i+1:]...)
				return
			}
		}
	}
}

// leasesChanged tells of one lease, or with "" of all.
func (h *hub) leasesChanged(name string) {
	h.mu.Lock()
	watches := h.watches
	h.mu.Unlock()
	for _, w := range watches {
		if name == "" || strings.HasPrefix(name, w.prefix) {
			w.wake(name)
		}
	}
}
