package run

import "sync"

// Gate admits callers until it is closed. The zero value is open. Safe for concurrent use.
type Gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

// Enter reports whether the caller was admitted. An admitted caller must call Leave.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

// Leave undoes Enter.
func (g *Gate) Leave() { g.inside.Done() }

// Close admits no more callers, and returns when all have left.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
