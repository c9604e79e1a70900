package faultproxy

// toClient hands back what the server says, until it ends. When the client is
// gone it goes on reading, so that the server can finish.
func (s *session) toClient() error {
	var buf []byte
	for {
		if s.fromServer.Buffered() == 0 {
			_ = s.intoClient.Flush() // an error stays in the writer, and later writes are nothing
			s.replies.flushed()
		}
		f, err := readFrame(s.fromServer, &buf)
		if err != nil {
			_ = s.intoClient.Flush()
			return err
		}
		if err := s.answer(f); err != nil {
			return err
		}
	}
}

// answer gives the client one message, holds it, or lets a fault strike first.
func (s *session) answer(f frame) error {
	switch f.kind() {
	case kindComplete, kindEmptyQuery, kindSuspended, kindError:
		return s.complete(f)
	case kindReady:
		return s.ready(f)
	case kindRow, kindRowDescription:
		if e := s.replies.head(); e != nil && e.after != nil && e.after.Do.kind == dropReply && e.kind != kindSync {
			return nil
		}
	}
	s.give(f)
	return nil
}

// complete takes the message that ends the answer to an Execute, or to one
// statement of a Query.
func (s *session) complete(f frame) error {
	e := s.replies.head()
	if e != nil && e.kind == kindQuery {
		if e.after != nil {
			s.held = e // a Query has ended when the server is ready again
		}
		s.give(f)
		return nil
	}
	if e != nil && e.kind == kindExecute {
		s.replies.pop()
	}
	if f.kind() == kindError {
		s.replies.refuse()
	}
	if e == nil || e.kind != kindExecute || e.after == nil {
		s.give(f)
		return nil
	}
	return s.completeArmed(e, f)
}

// completeArmed lets the After of an Execute strike now, or with the
// ReadyForQuery when a Sync follows at once.
func (s *session) completeArmed(e *entry, f frame) error {
	select {
	case sync := <-e.syncNext:
		if sync {
			s.held = e
			s.give(f)
			return nil
		}
	case <-s.done:
		return errCut
	}
	if err := s.strike(e.after); err != nil {
		return err
	}
	s.give(f)
	e.settle()
	return nil
}

// ready takes the ReadyForQuery that answers a Sync or a Query, or that ends
// the log-in.
func (s *session) ready(f frame) error {
	if s.replies.head() != nil {
		s.replies.pop()
	}
	s.give(f)
	if s.held == nil {
		return nil
	}
	e := s.held
	if err := s.strike(e.after); err != nil {
		return err
	}
	s.held = nil
	s.give(s.heldFrames)
	s.heldFrames = nil
	return nil
}

// give writes to the client, or adds to what is held. A client that is gone is
// no reason to stop reading.
func (s *session) give(f frame) {
	if s.held != nil {
		s.heldFrames = append(s.heldFrames, f...)
		return
	}
	_, _ = s.intoClient.Write(f)
}
