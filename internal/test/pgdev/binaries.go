package pgdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/edda-go/edda/internal/test/pgdev/release"
)

// DownloadVariable is the environment variable that forbids the download of a Postgres if it is "off".
const DownloadVariable = "EDDA_DOWNLOAD"

// places lists where a Postgres may be installed, and how to get one.
type places struct {
	path      string        // a list as in $PATH
	globs     []string      // directories of binaries outside the path
	downloads release.Store // without a Dir nothing is downloaded
	sbin      string        // the directory where Debian puts pgbouncer
	aptGet    string        // the apt-get to call if nothing is installed; "" means that it must not be called
	lock      string        // a file that only one installation at a time may hold
}

func machinePlaces() places {
	return places{
		path: os.Getenv("PATH"),
		globs: []string{
			"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
			"/usr/pgsql-*/bin",                  // Red Hat
			"/usr/libexec/postgresql*",          // Alpine
			"/opt/homebrew/opt/postgresql*/bin", // Homebrew
			"/usr/local/opt/postgresql*/bin",    // Homebrew on Intel
			"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		},
		downloads: machineDownloads(),
		sbin:      "/usr/sbin",
		aptGet:    rootsAptGet(),
		lock:      filepath.Join(os.TempDir(), "edda-pgdev-install.lock"),
	}
}

// rootsAptGet returns the path of apt-get if the process is root on Debian or a derivative.
func rootsAptGet() string {
	if os.Geteuid() != 0 {
		return ""
	}
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		return ""
	}
	path, _ := exec.LookPath("apt-get")
	return path
}

// anyVersion stands for any major version.
const anyVersion = 0

// Binaries returns the directory of initdb and postgres of a major version, and downloads that if it is not
// installed.
func Binaries(ctx context.Context, log io.Writer, major int) (dir string, err error) {
	return machinePlaces().binaries(ctx, log, major)
}

// binaries returns the directory of initdb and postgres of a major version, or of any. If no version is installed, it
// downloads one; if that fails, and the process is root on Debian, it installs one.
func (p places) binaries(ctx context.Context, log io.Writer, major int) (string, error) {
	if !startsServers {
		return "", errNoUnix
	}
	if dir, ok := p.find(major); ok {
		return dir, nil
	}
	dir, err := p.download(ctx, log, major)
	if err == nil {
		return dir, nil
	}
	if p.aptGet == "" || major != anyVersion {
		return "", errors.Join(err, errNoPostgres)
	}
	fmt.Fprintf(log, "pgdev: %v\n", err)
	err = p.install(ctx, log, "postgresql", func() bool { _, ok := p.find(anyVersion); return ok })
	if err != nil {
		return "", errors.Join(err, errNoPostgres)
	}
	if dir, ok := p.find(anyVersion); ok {
		return dir, nil
	}
	return "", errors.Join(errors.New("apt-get installed postgresql, and its binaries are not where Debian puts them"),
		errNoPostgres)
}

var errNoUnix = errors.New(`a Postgres is started on Unix alone: set DATABASE_URL to a server whose user may create
schemas, for example
    docker run --rm -d -p 5432:5432 -e POSTGRES_HOST_AUTH_METHOD=trust postgres
    set DATABASE_URL=postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable`)

// errNoPostgres lists the remedies, because its reader ran a test and wants to continue.
var errNoPostgres = errors.New(`there is no Postgres to use. Do one of the following:
  - unset EDDA_DOWNLOAD, and let the registry of npm be reached: a Postgres is downloaded from there
  - set DATABASE_URL to a server whose user may create schemas, for example
      docker run --rm -d -p 5432:5432 -e POSTGRES_HOST_AUTH_METHOD=trust postgres
      export DATABASE_URL='postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable'
  - Debian, Ubuntu: sudo apt-get install postgresql
  - Fedora, Red Hat: sudo dnf install postgresql-server
  - Alpine: apk add postgresql
  - macOS: brew install postgresql
  - put the directory that holds initdb and postgres in PATH`)

// find looks in the path first, so that a user's choice wins, then in the globs, the newest version first, and then
// among the downloads.
func (p places) find(major int) (string, bool) {
	var dirs []string
	for _, dir := range filepath.SplitList(p.path) {
		// Links are followed, because postgres looks for its share directory beside itself.
		if initdb, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb")); err == nil {
			dirs = append(dirs, filepath.Dir(initdb))
		}
	}
	for _, glob := range p.globs {
		found, _ := filepath.Glob(glob) // the only error is a malformed pattern, and ours are constants
		slices.SortFunc(found, func(a, b string) int { return majorVersion(b) - majorVersion(a) })
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		if complete(dir) && (major == anyVersion || versionOf(dir) == major) {
			return dir, true
		}
	}
	if p.downloads.Dir == "" || !ours(p.downloads.Dir) {
		return "", false // in /var/tmp any user may have made it
	}
	return p.downloads.Find(wanted(major))
}

// wanted returns the version to download.
func wanted(major int) int {
	if major == anyVersion {
		return release.Default
	}
	return major
}

// versionOf returns the major version of the server in a directory, by running it.
func versionOf(dir string) int {
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return anyVersion
	}
	major, _ := strconv.Atoi(digits.FindString(string(out)))
	return major
}

// complete reports whether dir has all programs of a private server. Client packages have only some of the binaries.
func complete(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode().Perm()&0o111 == 0 {
			return false
		}
	}
	return true
}

var digits = regexp.MustCompile(`\d+`)

// majorVersion returns the last number in a path such as /usr/lib/postgresql/15/bin.
func majorVersion(dir string) int {
	all := digits.FindAllString(dir, -1)
	if len(all) == 0 {
		return 0
	}
	version, _ := strconv.Atoi(all[len(all)-1]) // a number too long to be a version sorts as 0
	return version
}

// install runs apt-get after announcing it in log.
func (p places) install(ctx context.Context, log io.Writer, packet string, there func() bool) error {
	unlock, err := lockAt(p.lock)
	if err != nil {
		return err
	}
	defer unlock()
	if there() {
		return nil
	}
	fmt.Fprintf(log, "pgdev: no %s found; as root on Debian: apt-get update && apt-get install -y "+
		"--no-install-recommends %[1]s\n", packet)
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", packet}} {
		cmd := exec.CommandContext(ctx, p.aptGet, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// pgbouncer returns the path of PgBouncer, and installs it if there is no other way.
func (p places) pgbouncer(ctx context.Context, log io.Writer) (string, error) {
	return p.program(ctx, log, Program{Name: "pgbouncer", Package: "pgbouncer", Dirs: []string{p.sbin},
		Remedies: errNoBouncer})
}

var errNoBouncer = errors.New(`there is no PgBouncer to start. Do one of the following:
  - Debian, Ubuntu: sudo apt-get install pgbouncer
  - Fedora, Red Hat: sudo dnf install pgbouncer
  - macOS: brew install pgbouncer
  - put the directory that holds pgbouncer in PATH`)

// Program is a server that tests start, and that a machine may lack.
type Program struct {
	Name     string   // of the file
	Package  string   // of Debian
	Dirs     []string // where the file may be beside $PATH; a pattern of filepath.Glob each
	First    bool     // Dirs come before $PATH
	Remedies error    // is returned if the program cannot be found
}

// Find returns the path of the program. As root on Debian it installs the package if the program is missing, and
// announces that in log.
func (g Program) Find(ctx context.Context, log io.Writer) (string, error) {
	return machinePlaces().program(ctx, log, g)
}

func (p places) program(ctx context.Context, log io.Writer, g Program) (string, error) {
	if path, ok := p.findProgram(g); ok {
		return path, nil
	}
	if p.aptGet == "" {
		return "", g.Remedies
	}
	err := p.install(ctx, log, g.Package, func() bool { _, ok := p.findProgram(g); return ok })
	if err != nil {
		return "", errors.Join(err, g.Remedies)
	}
	if path, ok := p.findProgram(g); ok {
		return path, nil
	}
	return "", errors.Join(fmt.Errorf("apt-get installed %s, and %s is not where Debian puts it", g.Package, g.Name),
		g.Remedies)
}

// findProgram looks in the path first, as find does, unless the path has a wrapper of the program. A user's path
// often lacks the directory of Debian's servers.
func (p places) findProgram(g Program) (string, bool) {
	var more []string
	for _, pattern := range g.Dirs {
		found, _ := filepath.Glob(pattern) // the only error is a malformed pattern, and ours are constants
		more = append(more, found...)
	}
	dirs := append(filepath.SplitList(p.path), more...)
	if g.First {
		dirs = append(more, filepath.SplitList(p.path)...)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, g.Name)
		if info, err := os.Stat(path); dir != "" && err == nil && !info.IsDir() && info.Mode().Perm()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}
