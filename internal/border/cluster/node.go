package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
)

// nodeVariable makes this program a node; its value is the spec as JSON.
const nodeVariable = "EDDA_BORDER_NODE"

// spec is all that a node has to know.
type spec struct {
	Name, Dir, Host        string
	Client, Monitor, Route int // ports; no route: a node alone
	Routes                 []string
	SyncAlways             bool
	MaxPayload             int32
}

func (s spec) logFile() string { return filepath.Join(s.Dir, "log") }

func (s spec) at(port int) string { return net.JoinHostPort(s.Host, strconv.Itoa(port)) }

// canBeNode is set by RunNode. Without it a node would be one more run of the caller's program.
var canBeNode bool

// RunNode turns the process into a node, for ever, when it was started as one. It is the first call of main or TestMain.
func RunNode() {
	canBeNode = true
	text := os.Getenv(nodeVariable)
	if text == "" {
		return
	}
	if err := serve(text); err != nil {
		fmt.Fprintln(os.Stderr, "nats node:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs the server until our starter ends, whose pipe is our standard input.
func serve(text string) error {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("read %s: %w", nodeVariable, err)
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
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (s spec) options() (*server.Options, error) {
	o := &server.Options{
		ServerName: s.Name, Host: s.Host, Port: s.Client, HTTPHost: s.Host, HTTPPort: s.Monitor,
		JetStream: true, StoreDir: s.Dir, JetStreamMaxMemory: 4 << 30, JetStreamMaxStore: 16 << 30,
		SyncAlways: s.SyncAlways, MaxPayload: s.MaxPayload,
		NoSigs: true, LogFile: s.logFile(), Logtime: true,
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

	mu  sync.Mutex // guards what follows
	cmd *exec.Cmd  // nil: killed; it holds our end of the pipe, too
}

func (n *node) url() string { return "nats://" + n.spec.at(n.spec.Client) }

func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		return fmt.Errorf("start node %s: it runs", n.spec.Name)
	}
	if err := os.MkdirAll(n.spec.Dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of node %s: %w", n.spec.Name, err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own binary: %w", err)
	}
	text, err := json.Marshal(n.spec)
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for us, who then end the nodes
	if _, err := cmd.StdinPipe(); err != nil {
		return fmt.Errorf("open a pipe to node %s: %w", n.spec.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", n.spec.Name, err)
	}
	n.cmd = cmd
	return nil
}

// kill ends the process as a crash would. A node that is killed already stays so.
func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return nil
	}
	if err := n.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill node %s: %w", n.spec.Name, err)
	}
	_ = n.cmd.Wait() // that it was killed is no news
	n.cmd = nil
	return nil
}

// signal sends the process a signal. A node that is killed hears nothing.
func (n *node) signal(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return nil
	}
	if err := n.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("send %v to node %s: %w", s, n.spec.Name, err)
	}
	return nil
}
