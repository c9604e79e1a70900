package pgdev

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A server in memory creates and drops the hundred files of a test's schema in half the processor time of a file
// system on disk.
const (
	memoryMount = "/dev/shm"
	// in memory: several test binaries run at the same time, and each server's write-ahead log may grow to 1 GiB
	roomWanted = 8 << 30
)

// memoryDir returns a file system in memory with room for several servers. ok is false if TMPDIR is set, because that
// variable decides where files belong.
func memoryDir() (dir string, ok bool) {
	if os.Getenv("TMPDIR") != "" {
		return "", false
	}
	return memoryMount, freeSpace(memoryMount) >= roomWanted && availableMemory("/proc/meminfo") >= roomWanted
}

// availableMemory returns the bytes that the kernel could give without swapping, or 0 if that is unknown. The size of
// a file system in memory is only a limit, and not available memory.
func availableMemory(meminfo string) uint64 {
	text, err := os.ReadFile(filepath.Clean(meminfo))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "MemAvailable:" && words[2] == "kB" {
			kib, err := strconv.ParseUint(words[1], 10, 54)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
