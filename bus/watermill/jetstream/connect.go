package jetstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Connect connects to the servers of url, with the settings that a Publisher and a Subscriber need; the servers may
// still be away. more is applied after these settings: credentials, a name. The caller closes the connection, after its
// publishers and subscribers. An invalid url is an error.
func Connect(url string, more ...nats.Option) (*nats.Conn, error) {
	settings := []nats.Option{
		nats.MaxReconnects(-1), // the default gives up after 60 tries, for ever
		nats.ReconnectWait(100 * time.Millisecond),
		nats.RetryOnFailedConnect(true), // the program may start before the server does
		// No buffer: a message that is published while the server is away is an error now, and is not sent later.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(2 * time.Second), // a hanging server is detected in seconds, not in four minutes
	}
	conn, err := nats.Connect(url, append(settings, more...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", url, err)
	}
	return conn, nil
}

// check returns an error for a connection that would break the package's promises.
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
