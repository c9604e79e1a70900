package pgdev

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed guard.sh
var guardScript string

// guard is the watcher process around one command. It ends the command and removes the home when our end of the leash
// closes. The kernel closes it when our process ends, for whatever reason.
//
// It owns no goroutine, so that a test that counts goroutines is not disturbed.
type guard struct {
	cmd    *exec.Cmd
	leash  io.WriteCloser
	status *os.File
	said   []byte // bytes read from status so far
}

// watch starts argv under a guard. endSignal is the signal for the command when the leash closes; its output goes to
// the log of the home.
func watch(h home, endSignal string, argv ...string) (*guard, error) {
	log, err := os.OpenFile(h.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	defer log.Close()
	status, statusEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe to the watcher: %w", err)
	}
	defer statusEnd.Close()

	remove := h.dir
	if h.kept {
		remove = ""
	}
	cmd := exec.Command("sh", append([]string{"-c", guardScript, "guard.sh", remove, endSignal}, argv...)...)
	cmd.Dir = "/" // the unprivileged user may have no right to our directory
	cmd.Env = serverEnv(h.dir)
	cmd.Stdout = statusEnd
	cmd.Stderr = log
	// A session of its own, so that Ctrl-C reaches only us, and the guard through the leash.
	cmd.SysProcAttr = ownSession(h.credential)
	leash, err := cmd.StdinPipe()
	if err != nil {
		status.Close()
		return nil, fmt.Errorf("open a pipe to the watcher: %w", err)
	}
	if err := cmd.Start(); err != nil {
		status.Close()
		return nil, fmt.Errorf("start the watcher of %s: %w", filepath.Base(argv[0]), err)
	}
	return &guard{cmd: cmd, leash: leash, status: status}, nil
}

// serverEnv returns our environment without the variables that would change initdb and postgres.
func serverEnv(home string) []string {
	env := []string{"LC_ALL=C", "TZ=UTC", "HOME=" + home}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "PG") || strings.HasPrefix(name, "LC_") ||
			name == "LANG" || name == "TZ" || name == "HOME" {
			continue
		}
		env = append(env, kv)
	}
	return env
}

// ended waits at most d for the command to end, and reports whether it did.
func (g *guard) ended(d time.Duration) (exit string, ended bool) {
	if err := g.status.SetReadDeadline(time.Now().Add(d)); err != nil {
		return "status unknown: " + err.Error(), true
	}
	said, err := io.ReadAll(g.status)
	g.said = append(g.said, said...) // a deadline may fall between two bytes
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", false
	}
	return "exit status " + strings.TrimSpace(string(g.said)), true
}

// signal sends the command a signal by its short name, INT or QUIT.
func (g *guard) signal(name string) error {
	_, err := io.WriteString(g.leash, name+"\n")
	return err
}

// handOver lets a guard whose command has ended exit without removing the home: the next guard, already running, is
// responsible for it.
func (g *guard) handOver() error {
	if err := g.signal("keep"); err != nil {
		return err
	}
	return g.close()
}

// close ends the command at once, as the end of our process would, and waits for it. Unless the guard has handed
// over, the home is gone afterwards.
func (g *guard) close() error {
	g.leash.Close()
	err := g.cmd.Wait()
	g.status.Close()
	return err
}
