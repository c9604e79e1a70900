package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
)

// session is one client's connection and our connection to the server on its behalf.
type session struct {
	proxy          *Proxy
	client, server net.Conn
	fromClient     *bufio.Reader // toServer's
	intoServer     *bufio.Writer // toServer's
	fromServer     *bufio.Reader // toClient's
	intoClient     *bufio.Writer // toClient's
	replies        *replies

	names names  // toServer's
	last  *entry // toServer's: the Execute before this frame, if it has an After

	held       *entry // toClient's: its completion has come, its ReadyForQuery has not
	heldFrames []byte // toClient's: answers that the client has not received yet

	done chan struct{} // closed by cut
	once sync.Once
}

// errCut ends a direction whose connection a fault has cut.
var errCut = errors.New("cut by a fault")

// serve serves one client until either side ends.
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
		_, _ = io.Copy(io.Discard, server) // the server closes after it has acted
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

// cut closes both sides, and releases all goroutines that wait on this session.
func (s *session) cut() {
	s.once.Do(func() {
		close(s.done)
		s.client.Close()
		s.server.Close()
	})
}

// strike performs a fault, and cuts unless the action lets the connection continue.
func (s *session) strike(f *Fault) error {
	s.proxy.plan.noteFired(f)
	if f.Do.perform(s.done) {
		return nil
	}
	s.cut()
	return errCut
}
