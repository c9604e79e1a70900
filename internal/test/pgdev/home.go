package pgdev

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// home is the directory of a private server: data, socket and log. It is temporary unless it is kept. Postgres
// refuses to run as root, so root gives the home to an unprivileged user and runs the server as that user.
type home struct {
	dir        string
	credential *credential // nil: the server runs as we do
	kept       bool        // the directory stays when the server has ended
}

func (h home) dataDir() string { return filepath.Join(h.dir, "data") }
func (h home) logFile() string { return filepath.Join(h.dir, "server.log") }

// name distinguishes our server from any other that may answer on its port.
func (h home) name() string { return filepath.Base(h.dir) }

// newHome makes an empty home: on disk if it must survive a crash of the machine, otherwise in memory if there is
// room.
func newHome(durable bool) (home, error) {
	credential, err := serverCredential()
	if err != nil {
		return home{}, err
	}
	bases := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if memory, ok := memoryDir(); ok && !durable {
		bases = slices.Insert(bases, 0, memory)
	}
	base, err := homeBase(bases, credential != nil)
	if err != nil {
		return home{}, err
	}
	dir, err := os.MkdirTemp(base, "edda-pg-")
	if err != nil {
		return home{}, fmt.Errorf("make a directory for the server: %w", err)
	}
	h := home{dir: dir, credential: credential}
	if err := h.give(); err != nil {
		return home{}, errors.Join(err, os.RemoveAll(dir))
	}
	return h, nil
}

// give makes the server's user the owner of the home.
func (h home) give() error {
	if h.credential == nil {
		return nil
	}
	if err := os.Chown(h.dir, int(h.credential.Uid), int(h.credential.Gid)); err != nil {
		return fmt.Errorf("give %s to the server's user: %w", h.dir, err)
	}
	return nil
}

// serverCredential chooses the user that runs the server if we are root.
func serverCredential() (*credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr != nil || gidErr != nil || uid == 0 {
			continue
		}
		return &credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("postgres refuses to run as root, and there is neither a user postgres nor nobody to " +
		"run it as")
}

// socketPathMax is the length of the shortest sun_path of our systems (macOS: 104 bytes with the final zero), less
// the room for "/edda-pg-0123456789/.s.PGSQL.54321".
const socketPathMax = 103 - 36

// homeBase returns the first of bases that the server's user can reach and that keeps the path of the socket short
// enough.
func homeBase(bases []string, otherUser bool) (string, error) {
	bases = slices.Compact(bases)
	for _, base := range bases {
		if len(base) <= socketPathMax && (!otherUser || openToOthers(base)) {
			return base, nil
		}
	}
	return "", fmt.Errorf("no folder of %s can hold the server's directory: its path is too long, or its user has no "+
		"access",
		strings.Join(bases, ", "))
}

// openToOthers reports whether any user may pass through dir and all above it.
func openToOthers(dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

// logTail returns the end of the server's log, for an error message.
func (h home) logTail() string {
	const lines = 20
	text, err := os.ReadFile(h.logFile())
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "its log ends with:\n\t" + strings.Join(all[max(0, len(all)-lines):], "\n\t")
}
