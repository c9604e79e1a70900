package rabbit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/edda-go/edda/internal/test/procs"
)

// nodeVariable makes this program the one that watches over a broker; its value is the spec as JSON.
const nodeVariable = "EDDA_RABBIT_NODE"

// spec is all that a node has to know.
type spec struct {
	Server, Epmd string // paths of the programs
	Dir, Host    string
	Client       int // ports
	Dist, Names  int
}

func (s spec) logFile() string { return filepath.Join(s.Dir, "log") }

func (s spec) at() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Client)) }

// canBeNode is set by RunNode. Without it a node would be one more run of the caller's program.
var canBeNode bool

// RunNode turns the process into the watcher of a broker, for ever, when it was started as one. It is the first call of
// main or TestMain.
func RunNode() {
	canBeNode = true
	procs.Become(nodeVariable, "rabbit node", serve)
}

// serve runs epmd and the broker until our starter asks us to end, or has ended. Both then get a SIGKILL.
func serve() error {
	var s spec
	signals := make(chan syscall.Signal, 10)
	ctx, err := procs.Listen(context.Background(), nodeVariable, &s, func(line string) {
		signals <- map[string]syscall.Signal{"freeze": syscall.SIGSTOP, "thaw": syscall.SIGCONT}[line]
	})
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of the broker: %w", err)
	}
	defer log.Close()
	// Without an epmd at hand the broker would start one that outlives it.
	epmd, _, err := s.launch(log, s.Epmd, "-port", strconv.Itoa(s.Names), "-address", "127.0.0.1")
	if err != nil {
		return err
	}
	defer epmd()
	kill, broker, err := s.launch(log, s.Server)
	if err != nil {
		return err
	}
	defer kill()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-broker.ended:
			return errors.New("the broker ended by itself")
		case signal := <-signals:
			if err := syscall.Kill(-broker.pid, signal); err != nil {
				return fmt.Errorf("%v to the broker: %w", signal, err)
			}
		}
	}
}

type process struct {
	pid   int
	ended chan struct{}
}

// launch starts a program in a group of its own. kill ends the group, and returns when the program is gone.
func (s spec) launch(log *os.File, program string, args ...string) (kill func(), p process, err error) {
	command := exec.Command(program, args...)
	command.Env, command.Dir = s.environment(), s.Dir
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, process{}, fmt.Errorf("start %s: %w", program, err)
	}
	p = process{pid: command.Process.Pid, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = command.Wait() // how it ended is in its log
	}()
	return func() {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // an error says that it is gone
		<-p.ended
	}, p, nil
}

// environment leaves nothing to the machine's own settings of RabbitMQ. ALLOW_INPUT has the script become the broker,
// in place of a shell that waits for it, and the broker itself then does not read.
func (s spec) environment() []string {
	in := func(name string) string { return filepath.Join(s.Dir, name) }
	return append(os.Environ(),
		nodeVariable+"=",
		"HOME="+s.Dir,
		"RABBITMQ_NODENAME=edda@localhost",
		"RABBITMQ_NODE_IP_ADDRESS="+s.Host,
		"RABBITMQ_NODE_PORT="+strconv.Itoa(s.Client),
		"RABBITMQ_DIST_PORT="+strconv.Itoa(s.Dist),
		"ERL_EPMD_PORT="+strconv.Itoa(s.Names),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_INETRC="+in("inetrc"),
		"RABBITMQ_MNESIA_BASE="+in("data"),
		"RABBITMQ_LOG_BASE="+in("logs"),
		"RABBITMQ_LOGS=-",
		"RABBITMQ_CONFIG_FILE="+in("rabbitmq.conf"),
		"RABBITMQ_CONF_ENV_FILE="+in("none"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+in("none"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+in("plugins"),
		"RABBITMQ_ALLOW_INPUT=1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput +S 2:2 +sbwt none",
	)
}
