package rabbit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	startWithin = time.Minute // of one attempt, on a machine that does other things too
	endWithin   = 20 * time.Second
)

// Options of a broker.
type Options struct {
	Settings map[string]string // for rabbitmq.conf
}

// A Broker is the handle on a RabbitMQ. Its methods are called by one goroutine at a time.
type Broker struct {
	spec spec
	now  *procs.Process // nil: killed
	once sync.Once
	end  error
}

// errNoServer lists the remedies, because its reader ran a test and wants to go on.
var errNoServer = errors.New(`there is no RabbitMQ to start. Do one of the following:
  - Debian, Ubuntu: sudo apt-get install rabbitmq-server
  - Fedora, Red Hat: sudo dnf install rabbitmq-server
  - macOS: brew install rabbitmq
  - put the directory that holds rabbitmq-server in PATH`)

// server is the script itself: the one that Debian has in the path runs it as another user.
var server = pgdev.Program{
	Name: "rabbitmq-server", Package: "rabbitmq-server", First: true, Remedies: errNoServer,
	Dirs: []string{"/usr/lib/rabbitmq/bin", "/opt/homebrew/sbin", "/usr/local/sbin"},
}

var epmd = pgdev.Program{
	Name: "epmd", Package: "erlang-base", Remedies: errors.New("there is no epmd: install Erlang"),
	Dirs: []string{"/usr/lib/erlang/erts-*/bin", "/usr/lib64/erlang/erts-*/bin", "/opt/homebrew/lib/erlang/erts-*/bin"},
}

// Start starts a broker and returns when it answers.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if !canBeNode {
		return nil, errors.New("start a RabbitMQ: this binary has to call rabbit.RunNode first, in main or TestMain")
	}
	var s spec
	var err error
	if s.Server, err = server.Find(ctx, os.Stderr); err != nil {
		return nil, err
	}
	if s.Epmd, err = epmd.Find(ctx, os.Stderr); err != nil {
		return nil, err
	}
	return nodes.Start(ctx, func(ctx context.Context) (*Broker, error) { return attempt(ctx, s, o) })
}

func attempt(ctx context.Context, s spec, o Options) (*Broker, error) {
	var err error
	if s.Dir, err = os.MkdirTemp("", "edda-rabbit-"); err != nil {
		return nil, fmt.Errorf("make the directory of the broker: %w", err)
	}
	b := &Broker{spec: s}
	err = errors.Join(b.spec.plan(), b.spec.write(o))
	if err == nil {
		err = b.Restart(ctx, 0)
	}
	if err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

// plan picks an address that no other broker has, and ports.
func (s *spec) plan() error {
	s.Host = nodes.OwnHost()
	client, err := nodes.FreePorts(s.Host, 1)
	if err != nil {
		return err
	}
	others, err := nodes.FreePorts("127.0.0.1", 2)
	if err != nil {
		return err
	}
	s.Client, s.Dist, s.Names = client[0], others[0], others[1]
	return nil
}

// write makes the files that the broker reads. The node's name is looked up in a file: a resolver's port program would
// outlive the broker.
func (s *spec) write(o Options) error {
	settings := map[string]string{"loopback_users": "none", "log.console.level": "warning",
		"disk_free_limit.absolute": "50MB"}
	maps.Copy(settings, o.Settings)
	conf := ""
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		conf += name + " = " + settings[name] + "\n"
	}
	for name, text := range map[string]string{
		"rabbitmq.conf": conf, "plugins": "[].\n",
		"inetrc": "{host, {127,0,0,1}, [\"localhost\"]}.\n{lookup, [file]}.\n",
	} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the settings of the broker: %w", err)
		}
	}
	return nil
}

// URL is for amqp091.Dial and for ConnectionConfig.AmqpURI of watermill-amqp.
func (b *Broker) URL() string { return "amqp://guest:guest@" + b.spec.at() + "/" }

// Nodes is 1.
func (b *Broker) Nodes() int { return 1 }

// Leader is the only node.
func (b *Broker) Leader(context.Context, string) (int, error) { return 0, nil }

// Kill kills the broker, see nodes.Nodes.
func (b *Broker) Kill(int) error {
	if b.now == nil {
		return errors.New("kill the broker: it is down")
	}
	p := b.now
	b.now = nil
	return p.Stop(endWithin)
}

// Restart starts a broker that was killed, and returns when it answers.
func (b *Broker) Restart(ctx context.Context, _ int) error {
	if b.now != nil {
		return errors.New("start the broker: it runs")
	}
	p, err := procs.Start(procs.Job{Name: "rabbit", Variable: nodeVariable, Task: b.spec, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	b.now = p
	return b.awaitReady(ctx)
}

// Freeze stops the broker. Thaw tells of one that has ended.
func (b *Broker) Freeze(int) { _ = b.now.WriteLine("freeze") }

// Thaw lets the broker go on, and returns when it answers.
func (b *Broker) Thaw(ctx context.Context, _ int) error {
	if err := b.now.WriteLine("thaw"); err != nil {
		return err
	}
	return b.awaitReady(ctx)
}

// Connect opens a connection for questions and set-up.
func (b *Broker) Connect() (*amqp.Connection, error) {
	conn, err := amqp.DialConfig(b.URL(),
		amqp.Config{Heartbeat: 2 * time.Second, Dial: amqp.DefaultDial(2 * time.Second)})
	if err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	return conn, nil
}

func (b *Broker) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	go func(p *procs.Process) {
		select {
		case <-p.Ended():
			ended(p.End())
		case <-ctx.Done():
		}
	}(b.now)
	err := nodes.Await(ctx, func(context.Context) error {
		conn, err := b.Connect()
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return fmt.Errorf("the broker does not come up: %w; its log ends with\n%s", err,
			nodes.LogTail(b.spec.logFile(), ""))
	}
	return nil
}

// AwaitKept returns when the queues are in the file of their names. A broker that is killed within a second of the
// declaration of a quorum queue comes back without a leader for it, and never answers who publishes to it.
func (b *Broker) AwaitKept(ctx context.Context, queues ...string) error {
	return nodes.Await(ctx, func(context.Context) error {
		files, err := filepath.Glob(filepath.Join(b.spec.Dir, "data", "*", "quorum", "*", "names.dets"))
		if err != nil {
			return err
		}
		var text []byte
		for _, file := range files {
			if text, err = os.ReadFile(file); err != nil {
				return fmt.Errorf("read the names of the queues: %w", err)
			}
		}
		at := slices.IndexFunc(queues, func(queue string) bool { return !bytes.Contains(text, []byte(queue)) })
		if at < 0 {
			return nil
		}
		return fmt.Errorf("queue %s is not kept", queues[at])
	})
}

// Ready is how many messages the queue holds that are with no consumer.
func (b *Broker) Ready(queue string) (int, error) {
	conn, err := b.Connect()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	q, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	return q.Messages, err
}

// Stop ends the broker and removes its files.
func (b *Broker) Stop() error {
	b.once.Do(func() {
		if b.now != nil {
			b.end = b.Kill(0)
		}
		b.end = errors.Join(b.end, os.RemoveAll(b.spec.Dir))
	})
	return b.end
}

// New is Start for a test, which ends the broker.
func New(t testing.TB, o Options) *Broker {
	t.Helper()
	b, err := Start(t.Context(), o)
	return nodes.Of(t, b, err)
}
