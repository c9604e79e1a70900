package faultproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// frame is one unchanged message: its kind, its length and its body. The proxy forwards these bytes, so it cannot
// change messages that it does not understand; pgproto3 parses the few kinds that matter.
type frame []byte

func (f frame) kind() byte   { return f[0] }
func (f frame) body() []byte { return f[5:] }

// Kinds sent by the client.
const (
	kindParse    = 'P'
	kindBind     = 'B'
	kindClose    = 'C'
	kindExecute  = 'E'
	kindQuery    = 'Q'
	kindFunction = 'F'
	kindSync     = 'S'
)

// Kinds sent by the server.
const (
	kindComplete       = 'C'
	kindEmptyQuery     = 'I'
	kindSuspended      = 's'
	kindError          = 'E'
	kindReady          = 'Z'
	kindRow            = 'D'
	kindRowDescription = 'T'
)

// flushFrame makes the server answer the requests so far.
var flushFrame = frame{'H', 0, 0, 0, 4}

// bodyMax is the longest body that Postgres accepts.
const bodyMax = 1 << 30

// readFrame reads the next message into buf, and grows it if necessary. The frame is valid until the next call with
// the same buf.
func readFrame(r *bufio.Reader, buf *[]byte) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(head[1:])) // counts itself, not the kind
	if length < 4 || length > bodyMax {
		return nil, fmt.Errorf("read a message of kind %q: its length is %d", head[0], length)
	}
	if cap(*buf) < length+1 {
		*buf = make([]byte, length+1)
	}
	f := (*buf)[:length+1]
	copy(f, head[:])
	_, err := io.ReadFull(r, f[len(head):])
	return frame(f), err
}

// Codes in place of a version in a first message.
const (
	codeCancel = 80877102
	codeTLS    = 80877103
	codeGSS    = 80877104
)

// readStartup reads a first message, which has no kind.
func readStartup(r *bufio.Reader) (code uint32, message []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := int(binary.BigEndian.Uint32(head[:4]))
	if length < 8 || length > 10_000 { // the same bound as in Postgres
		return 0, nil, fmt.Errorf("read the first message: its length is %d", length)
	}
	message = make([]byte, length)
	copy(message, head[:])
	_, err = io.ReadFull(r, message[len(head):])
	return binary.BigEndian.Uint32(head[4:]), message, err
}
