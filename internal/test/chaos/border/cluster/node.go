package cluster

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/edda-go/edda/internal/test/procs"
	"github.com/nats-io/nats-server/v2/server"
)

// nodeVariable makes this program a node; its value is the spec as JSON.
const nodeVariable = "EDDA_BORDER_NODE"

// spec is all that a node has to know.
type spec struct {
	Name, Dir, Host        string
	Client, Monitor, Route int // ports; no route: a node alone
	Routes                 []string
	MaxPayload             int32
}

func (s spec) logFile() string { return filepath.Join(s.Dir, "log") }

func (s spec) at(port int) string { return net.JoinHostPort(s.Host, strconv.Itoa(port)) }

// canBeNode is set by RunNode. Without it a node would be one more run of the caller's program.
var canBeNode bool

// RunNode turns the process into a node, for ever, when it was started as one. It is the first call of main or
// TestMain.
func RunNode() {
	canBeNode = true
	procs.Become(nodeVariable, "nats node", serve)
}

// serve runs the server until our starter asks us to end, or has ended.
func serve() error {
	var s spec
	ctx, err := procs.Attend(context.Background(), nodeVariable, &s)
	if err != nil {
		return err
	}
	o, err := s.options()
	if err != nil {
		return err
	}
	nats, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("make server %s: %w", s.Name, err)
	}
	nats.ConfigureLogger()
	nats.Start()
	<-ctx.Done()
	return nil
}

func (s spec) options() (*server.Options, error) {
	o := &server.Options{
		ServerName: s.Name, Host: s.Host, Port: s.Client, HTTPHost: s.Host, HTTPPort: s.Monitor,
		JetStream: true, StoreDir: s.Dir, JetStreamMaxMemory: 4 << 30, JetStreamMaxStore: 16 << 30,
		MaxPayload: s.MaxPayload,
		NoSigs:     true, LogFile: s.logFile(), Logtime: true,
	}
	if s.Route == 0 {
		return o, nil
	}
	o.Cluster = server.ClusterOpts{Name: "edda", Host: s.Host, Port: s.Route}
	for _, route := range s.Routes {
		peer, err := url.Parse(route)
		if err != nil {
			return nil, fmt.Errorf("read the route %s: %w", route, err)
		}
		o.Routes = append(o.Routes, peer)
	}
	return o, nil
}

// A node is one process after another under one name.
type node struct {
	spec spec

	mu  sync.Mutex     // guards now
	now *procs.Process // nil: killed
}

func (n *node) url() string { return "nats://" + n.spec.at(n.spec.Client) }

func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now != nil {
		return fmt.Errorf("start node %s: it runs", n.spec.Name)
	}
	if err := os.MkdirAll(n.spec.Dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of node %s: %w", n.spec.Name, err)
	}
	p, err := procs.Start(
		procs.Job{Name: "node " + n.spec.Name, Variable: nodeVariable, Task: n.spec, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	n.now = p
	return nil
}

// kill ends the process as a crash would, and reports whether there was one.
func (n *node) kill() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now == nil {
		return false
	}
	n.now.Kill()
	n.now = nil
	return true
}

// running calls f with the process, if there is one.
func (n *node) running(f func(*procs.Process)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now != nil {
		f(n.now)
	}
}
