package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/nats-io/nats.go"
)

// Options of a cluster. The zero value is one node, as NATS is by default.
type Options struct {
	Nodes      int   // 1 or 3; 0 is 1
	MaxPayload int32 // of a message with its headers; 0 is the default of NATS, 1 MiB
}

// A Cluster is the handle on the nodes. Its methods may be called concurrently, but a node is killed and restarted by
// one caller at a time.
type Cluster struct {
	dir   string
	nodes []*node

	once sync.Once
	end  error
}

// Start starts the nodes and returns when a meta leader is elected and every node knows it.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if !canBeNode {
		return nil, errors.New("start a cluster: this binary has to call cluster.RunNode first, in main or TestMain")
	}
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Nodes != 1 && o.Nodes != 3 {
		return nil, fmt.Errorf("start a cluster of %d nodes: it has 1 or 3", o.Nodes)
	}
	return nodes.Start(ctx, func(ctx context.Context) (*Cluster, error) { return attempt(ctx, o) })
}

func attempt(ctx context.Context, o Options) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "edda-nats-")
	if err != nil {
		return nil, fmt.Errorf("make the directory of the cluster: %w", err)
	}
	c := &Cluster{dir: dir}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	if err := c.plan(o); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := n.awaitWell(ctx); err != nil {
			return err
		}
	}
	return nil
}

// plan gives every node its name, its directory and its ports, which it keeps through all its lives.
func (c *Cluster) plan(o Options) error {
	specs := make([]spec, o.Nodes)
	host := nodes.OwnHost()
	ports, err := nodes.FreePorts(host, 3*o.Nodes)
	if err != nil {
		return err
	}
	var routes []string
	for i := range specs {
		name := fmt.Sprintf("n%d", i+1)
		specs[i] = spec{
			Name: name, Dir: filepath.Join(c.dir, name), Host: host, MaxPayload: o.MaxPayload,
			Client: ports[3*i], Monitor: ports[3*i+1],
		}
		if o.Nodes > 1 {
			specs[i].Route = ports[3*i+2]
			routes = append(routes, "nats://"+specs[i].at(specs[i].Route))
		}
	}
	for _, s := range specs {
		s.Routes = routes
		c.nodes = append(c.nodes, &node{spec: s})
	}
	return nil
}

// URL names all nodes, for nats.Connect and for the URL of watermill-nats.
func (c *Cluster) URL() string {
	urls := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		urls[i] = n.url()
	}
	return strings.Join(urls, ",")
}

// Connect connects to any node. The connection finds another when its own is killed, and never gives up: the default
// does so, for ever, after sixty tries.
func (c *Cluster) Connect() (*nats.Conn, error) {
	conn, err := nats.Connect(c.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return conn, nil
}

// Nodes is how many nodes there are, killed ones included.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// Kill kills a node, see nodes.Nodes.
func (c *Cluster) Kill(i int) error {
	if !c.nodes[i].kill() {
		return fmt.Errorf("kill node %s: it is down", c.nodes[i].spec.Name)
	}
	return nil
}

// Restart starts a node that was killed, and returns when it has caught up with its peers.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	if err := c.nodes[i].start(); err != nil {
		return err
	}
	return c.nodes[i].awaitWell(ctx)
}

// Freeze stops a node. It may be killed like that.
func (c *Cluster) Freeze(i int) { c.nodes[i].running((*procs.Process).Freeze) }

// Thaw lets a node go on that was frozen, and returns when it has caught up with its peers.
func (c *Cluster) Thaw(ctx context.Context, i int) error {
	c.nodes[i].running((*procs.Process).Thaw)
	return c.nodes[i].awaitWell(ctx)
}

// Stop ends all nodes and removes their files.
func (c *Cluster) Stop() error {
	c.once.Do(func() {
		for _, n := range c.nodes {
			n.kill()
		}
		c.end = os.RemoveAll(c.dir)
	})
	return c.end
}

// New is Start for a test, which ends the cluster.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), o)
	return nodes.Of(t, c, err)
}
