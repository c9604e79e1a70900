package outbox

// A call of forward fails as a whole if forward panics, ends its goroutine, or returns errors whose number is neither
// 0 nor the number of messages. Then it is unknown which message was the cause, and which of them the other side has
// accepted. No message is blamed. The relay searches: it forwards half of these messages, in order, then half of the
// remaining ones, until one message fails alone. That is a failure like any other, and the message is forwarded alone
// from then on. Each other message of that call is forwarded again at most about log2(n) times.

// search decides how many messages the next call of forward gets. It is only in memory.
type search struct {
	most     int     // BatchMax
	size     float64 // messages of a call while no search is active
	suspects int     // the number of messages at the head that are still searched; 0: no search is active
	failedAt int     // messages of the last call that failed as a whole
}

func newSearch(most int) search { return search{most: most, size: float64(most)} }

// next returns the number of messages for the next call.
func (s *search) next() int {
	if s.suspects > 0 {
		return max(1, min(s.suspects/2, int(s.size)))
	}
	return max(1, int(s.size))
}

// failed is called after a call of n messages has failed as a whole. A message that fails alone explains the earlier
// failures.
func (s *search) failed(messages int) {
	if s.failedAt = messages; messages > 1 {
		s.suspects = messages
		return
	}
	s.suspects = 0
}

// passed is called after forward has returned a result for each of n messages. If a search ends without a message
// that fails alone, the calls were too large, or the cause has gone: calls become smaller, and grow again.
func (s *search) passed(messages int) {
	if s.suspects == 0 {
		s.size = min(s.size*growOnGood+0.1, float64(s.most))
		return
	}
	if s.suspects = max(0, s.suspects-messages); s.suspects == 0 {
		s.size = max(1, float64(s.failedAt)*shrinkOnBad)
	}
}

// portion returns how many of messages the next call of forward gets. A message that has failed alone stays alone.
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

// isolate records that a call with m alone has failed as a whole.
func (c *carrier) isolate(m *message) {
	if f := c.failures[m.ID]; f != nil {
		f.alone = true
	}
}
