package pgdev

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A server in memory makes and drops the hundred files of a test's schema in half of the processor time that a disk's
// file system takes.
const (
	memoryMount = "/dev/shm"
	// of memory: several test binaries run at the same time, and each server's log of writes may grow to 1 GiB
	roomWanted = 8 << 30
)

// memoryDir is a file system in memory with room for several servers. There is none when TMPDIR is set: who sets it
// says where files belong.
func memoryDir() (dir string, ok bool) {
	if os.Getenv("TMPDIR") != "" {
		return "", false
	}
	return memoryMount, freeSpace(memoryMount) >= roomWanted && availableMemory("/proc/meminfo") >= roomWanted
}

// availableMemory is what the kernel could give without swapping, in bytes; 0 where it does not say. The size of a file
// system in memory is a limit, and promises nothing.
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
