//go:build unix

package pgdev

import (
	"errors"
	"os"
	"syscall"
)

const startsServers = true

// credential is the user that runs a server.
type credential = syscall.Credential

// ownSession makes a process begin a session, as the given user.
func ownSession(c *credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: c}
}

// lockFile waits until no other process has the file locked. Closing it ends the lock.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }

// isAlive reports whether a process has this number.
func isAlive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// ours reports whether a directory belongs to us, and no other user may write there.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(status.Uid) == os.Geteuid()
}
