package jetstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Connect connects to the servers of url, which may be away yet, with the settings that a Publisher and a Subscriber
// need. more comes after them: credentials, a name. The caller closes the connection, after what uses it.
func Connect(url string, more ...nats.Option) (*nats.Conn, error) {
	settings := []nats.Option{
		nats.MaxReconnects(-1), // the default gives up after 60 tries, for ever
		nats.ReconnectWait(100 * time.Millisecond),
		nats.RetryOnFailedConnect(true), // the program may start before the server does
		// no buffer: a message given while away is an error now, and is not sent later behind our back
		nats.ReconnectBufSize(-1),
		nats.PingInterval(2 * time.Second), // a server that hangs is noticed in seconds, in place of four minutes
	}
	conn, err := nats.Connect(url, append(settings, more...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", url, err)
	}
	return conn, nil
}

// check refuses a connection on which the promises would not hold.
func check(conn *nats.Conn) error {
	switch {
	case conn == nil:
		return errors.New("the connection is nil")
	case conn.Opts.ReconnectBufSize != -1:
		return errors.New("the connection buffers messages while it is down, and sends them after Publish has " +
			"failed: connect with nats.ReconnectBufSize(-1), or by Connect")
	case conn.Opts.MaxReconnect >= 0:
		return fmt.Errorf("the connection gives up after %d tries: connect with nats.MaxReconnects(-1), "+
			"or by Connect", conn.Opts.MaxReconnect)
	}
	return nil
}
