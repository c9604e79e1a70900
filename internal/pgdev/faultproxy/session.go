package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
)

// A session is one client's connection and ours to the server on its behalf.
type session struct {
	proxy          *Proxy
	client, server net.Conn
	fromClient     *bufio.Reader // toServer's
	intoServer     *bufio.Writer // toServer's
	fromServer     *bufio.Reader // toClient's
	intoClient     *bufio.Writer // toClient's
	replies        *replies

	names names  // toServer's
	last  *entry // toServer's: the Execute before this frame, when its After is armed

	held       *entry // toClient's: its completion came, its ReadyForQuery not yet
	heldFrames []byte // toClient's: what the client is not given yet

	done chan struct{} // closed by cut
	once sync.Once
}

// errCut ends a direction whose connection a fault has cut.
var errCut = errors.New("cut by a fault")

// serve speaks with one client until either side ends.
func serve(p *Proxy, client net.Conn) {
	fromClient := bufio.NewReader(client)
	code, first, err := readStartup(fromClient)
	for err == nil && (code == codeTLS || code == codeGSS) {
		if _, err = client.Write([]byte{'N'}); err == nil {
			code, first, err = readStartup(fromClient)
		}
	}
	if err != nil {
		return
	}
	server, err := net.Dial(p.network, p.backend)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.track(server) {
		return
	}
	defer p.forget(server)
	if _, err := server.Write(first); err != nil {
		return
	}
	if code == codeCancel {
		_, _ = io.Copy(io.Discard, server) // the server closes when it has acted
		return
	}
	newSession(p, client, fromClient, server).run()
}

func newSession(p *Proxy, client net.Conn, fromClient *bufio.Reader, server net.Conn) *session {
	return &session{
		proxy:      p,
		client:     client,
		server:     server,
		fromClient: fromClient,
		intoServer: bufio.NewWriter(server),
		fromServer: bufio.NewReader(server),
		intoClient: bufio.NewWriter(client),
		replies:    newReplies(),
		names:      newNames(),
		done:       make(chan struct{}),
	}
}

func (s *session) run() {
	var other sync.WaitGroup
	other.Go(func() {
		if err := s.toServer(); err != nil {
			s.cut()
		}
	})
	_ = s.toClient()
	s.cut()
	other.Wait()
}

// cut closes both sides, and releases whoever waits on this session.
func (s *session) cut() {
	s.once.Do(func() {
		close(s.done)
		s.client.Close()
		s.server.Close()
	})
}

// toServer forwards what the client says, until it ends. An error cuts.
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

// clientGone sees to it that what the client sent still counts: the server
// reads it all, then the end of file. toClient ends when the server does.
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

// awaitAnswers returns when the client was given the answers to all it sent.
func (s *session) awaitAnswers() error {
	if err := s.flushServer(); err != nil {
		return err
	}
	if !s.replies.awaitGiven(s.done) {
		return errCut
	}
	return nil
}

// finishLast lets the After of the Execute before this frame happen before
// anything else is forwarded. A Sync is forwarded, because it is what commits
// when no transaction was begun; a Close changes nothing.
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

// flushServer makes the server answer what it was sent so far.
func (s *session) flushServer() error {
	if _, err := s.intoServer.Write(flushFrame); err != nil {
		return err
	}
	return s.intoServer.Flush()
}

// strike performs a fault, and cuts unless the action lets the connection go on.
func (s *session) strike(f *Fault) error {
	s.proxy.plan.noteFired(f)
	if f.Do.perform(s.done) {
		return nil
	}
	s.cut()
	return errCut
}

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
