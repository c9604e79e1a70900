package scheduler

import (
	"sync"
	"time"
)

// aside are manifests that this server passes over for a while, because they could not be evaluated. Nothing of it is
// stored: a newer server may understand what an older one does not. So their due times are kept, and do not clog the
// head of those that are due. Safe for concurrent use.
type aside struct {
	mu    sync.Mutex
	until map[int64]time.Time // by manifest
}

const asideFor = time.Minute

func (a *aside) put(manifest int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = map[int64]time.Time{}
	}
	a.until[manifest] = time.Now().Add(asideFor)
}

func (a *aside) list() []int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]int64, 0, len(a.until))
	for manifest, until := range a.until {
		if time.Now().After(until) {
			delete(a.until, manifest)
		} else {
			list = append(list, manifest)
		}
	}
	return list
}
