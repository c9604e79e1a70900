package broker

import (
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const comesUpWithin = 10 * time.Second

// Start runs a server in this process, which keeps its streams in a folder. A real one is a cluster of three.
func Start(folder string) (url string, stop func(), err error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
		StoreDir: folder, NoSigs: true, NoLog: true})
	if err != nil {
		return "", nil, err
	}
	go s.Start()
	stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	if !s.ReadyForConnections(comesUpWithin) {
		stop()
		return "", nil, errors.New("the broker did not come up")
	}
	return s.ClientURL(), stop, nil
}
