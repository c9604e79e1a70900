package pgdev

import "syscall"

// freeSpace returns how many bytes any user may still write into the file system of dir, or 0 if that is unknown.
func freeSpace(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Bsize < 0 {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
