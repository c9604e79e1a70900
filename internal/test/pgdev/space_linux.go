package pgdev

import "syscall"

// freeSpace is what everybody may still write into the file system of dir, in bytes; 0 when it cannot be asked.
func freeSpace(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Bsize < 0 {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
