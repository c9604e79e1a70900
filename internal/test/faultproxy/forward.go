package faultproxy

// toServer forwards the client's messages until the client ends. An error cuts the connection.
func (s *session) toServer() error {
	var buf []byte
	for {
		if s.fromClient.Buffered() == 0 {
			if err := s.intoServer.Flush(); err != nil {
				return err
			}
		}
		f, err := readFrame(s.fromClient, &buf)
		if err != nil {
			return s.clientGone()
		}
		if err := s.forward(f); err != nil {
			return err
		}
	}
}

// clientGone makes the data that the client sent take effect: the server reads it all, then the end of file. toClient
// ends when the server does.
func (s *session) clientGone() error {
	const nothing = 0
	if err := s.finishLast(nothing); err != nil {
		return err
	}
	if err := s.intoServer.Flush(); err != nil {
		return err
	}
	if half, ok := s.server.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (s *session) forward(f frame) error {
	if err := s.finishLast(f.kind()); err != nil {
		return err
	}
	switch f.kind() {
	case kindParse, kindBind, kindClose:
		if err := s.names.learn(f); err != nil {
			return err
		}
	case kindExecute, kindQuery:
		return s.execute(f)
	case kindFunction:
		s.replies.push(newEntry(kindQuery, nil))
	case kindSync:
		s.replies.push(newEntry(kindSync, nil))
	}
	_, err := s.intoServer.Write(f)
	return err
}

// execute forwards an Execute or a Query, unless a fault keeps it here.
func (s *session) execute(f frame) error {
	name, err := s.names.executed(f)
	if err != nil {
		return err
	}
	struck := s.proxy.plan.pass(name)
	if struck.before != nil {
		if err := s.awaitAnswers(); err != nil {
			return err
		}
		if err := s.strike(struck.before); err != nil {
			return err
		}
	}
	e := newEntry(f.kind(), struck.after)
	if answered := s.replies.push(e); answered && e.after != nil && e.kind == kindExecute {
		s.last = e
	}
	_, err = s.intoServer.Write(f)
	return err
}

// awaitAnswers returns when the client has the answers to all its requests.
func (s *session) awaitAnswers() error {
	if err := s.flushServer(); err != nil {
		return err
	}
	if !s.replies.awaitGiven(s.done) {
		return errCut
	}
	return nil
}

// finishLast performs the After of the Execute before this frame, before anything else is forwarded. A Sync is
// forwarded, because it commits if no transaction was begun; a Close changes nothing.
func (s *session) finishLast(next byte) error {
	if s.last == nil || next == kindClose {
		return nil
	}
	e := s.last
	s.last = nil
	e.syncNext <- next == kindSync
	if next == kindSync {
		return nil
	}
	if err := s.flushServer(); err != nil {
		return err
	}
	select {
	case <-e.settled:
		return nil
	case <-s.done:
		return errCut
	}
}

// flushServer makes the server answer all requests so far.
func (s *session) flushServer() error {
	if _, err := s.intoServer.Write(flushFrame); err != nil {
		return err
	}
	return s.intoServer.Flush()
}
