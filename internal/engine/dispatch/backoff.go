package dispatch

import (
	"sync"
	"time"
)

// backoff records manifests that this server skips for a while, because it could not evaluate them. It is not stored:
// a newer server may understand a manifest that an older one does not. The due times are kept, and the manifests do
// not block the head of the due ones. Safe for concurrent use.
type backoff struct {
	mu    sync.Mutex
	until map[int64]time.Time // by manifest
}

const backoffFor = time.Minute

func (b *backoff) add(manifest int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = map[int64]time.Time{}
	}
	b.until[manifest] = time.Now().Add(backoffFor)
}

func (b *backoff) list() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]int64, 0, len(b.until))
	for manifest, until := range b.until {
		if time.Now().After(until) {
			delete(b.until, manifest)
		} else {
			list = append(list, manifest)
		}
	}
	return list
}
