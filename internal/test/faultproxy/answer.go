package faultproxy

// toClient forwards the server's messages until the server ends. If the client has gone it continues to read, so that
// the server can finish.
func (s *session) toClient() error {
	var buf []byte
	for {
		if s.fromServer.Buffered() == 0 {
			_ = s.intoClient.Flush() // the writer keeps the error, and later writes do nothing
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

// answer forwards one message to the client, holds it, or performs a fault first.
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

// complete handles the message that ends the answer to an Execute, or to one statement of a Query.
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

// completeArmed performs the After of an Execute now, or with the ReadyForQuery if a Sync follows at once.
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

// ready handles the ReadyForQuery that answers a Sync or a Query, or that ends the log-in.
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

// give writes to the client, or adds to the held frames. It continues to read even if the client has gone.
func (s *session) give(f frame) {
	if s.held != nil {
		s.heldFrames = append(s.heldFrames, f...)
		return
	}
	_, _ = s.intoClient.Write(f)
}
