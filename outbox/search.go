package outbox

// A call of forward fails as a whole when forward panics, ends its goroutine, or answers with neither no errors nor one
// for each message. Then nobody knows which message was the cause, or which of them the other side has. No message is
// blamed. The relay searches: it gives half of these messages to forward, in their order, and goes on with half of what
// remains, until one message fails by itself. That is a failure like any other, and the message is given by itself from
// then on. Each other message of that call comes again about log2(n) times at most.

// search says how many messages the next call of forward is given. It is in memory alone.
type search struct {
	most     int     // BatchMax
	size     float64 // messages of a call while nothing is sought
	suspects int     // so many messages at the head are sought through; 0: there is no search
	failedAt int     // messages of the last call that failed as a whole
}

func newSearch(most int) search { return search{most: most, size: float64(most)} }

// next returns how many messages the next call is given.
func (s *search) next() int {
	if s.suspects > 0 {
		return max(1, min(s.suspects/2, int(s.size)))
	}
	return max(1, int(s.size))
}

// failed is called when a call of so many messages has failed as a whole. One message that fails so explains the calls
// before.
func (s *search) failed(messages int) {
	if s.failedAt = messages; messages > 1 {
		s.suspects = messages
		return
	}
	s.suspects = 0
}

// passed is called when forward has answered for so many messages. A search in which no message fails by itself says
// that there were too many at a time, or that nothing is wrong any more: calls become smaller, and grow again.
func (s *search) passed(messages int) {
	if s.suspects == 0 {
		s.size = min(s.size*growOnGood+0.1, float64(s.most))
		return
	}
	if s.suspects = max(0, s.suspects-messages); s.suspects == 0 {
		s.size = max(1, float64(s.failedAt)*shrinkOnBad)
	}
}

// portion returns how many of messages the next call of forward is given. A message that has failed by itself stays by
// itself.
func (c *carrier) portion(messages []*message) int {
	most := min(c.search.next(), len(messages))
	if len(c.failures) == 0 {
		return most
	}
	for n, m := range messages[:most] {
		if f := c.failures[m.ID]; f != nil && f.alone {
			return max(1, n)
		}
	}
	return most
}

// isolate notes that a call of m alone has failed as a whole.
func (c *carrier) isolate(m *message) {
	if f := c.failures[m.ID]; f != nil {
		f.alone = true
	}
}
