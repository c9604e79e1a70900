//go:build !unix

package pgdev

import (
	"os"
	"syscall"
)

// A private server needs the signals and sessions of Unix. On other systems DATABASE_URL must name one.
const startsServers = false

type credential struct{ Uid, Gid uint32 }

func ownSession(*credential) *syscall.SysProcAttr { return nil }

func lockFile(*os.File) error { return nil }

func isAlive(int) bool { return false }

func ours(string) bool { return false }
