package pgdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/edda-go/edda/internal/test/pgdev/release"
)

// machineDownloads returns the source of downloads, npm's registry on this machine, and our directory for them.
func machineDownloads() release.Store {
	registry := os.Getenv("NPM_CONFIG_REGISTRY")
	if registry == "" {
		registry = "https://registry.npmjs.org"
	}
	return release.Store{Dir: downloadDir(), Registry: registry, System: release.ThisSystem()}
}

// downloadDir returns a directory whose files outlive a restart of the machine, and which the user of a server may
// enter.
func downloadDir() string {
	const name = "edda-postgres"
	cache, err := os.UserCacheDir()
	if err == nil && (os.Geteuid() != 0 || openToOthers(cache)) {
		return filepath.Join(cache, name)
	}
	return fmt.Sprintf("/var/tmp/%s-%d", name, os.Getuid())
}

var errNoDownload = errors.New("a Postgres may not be downloaded, because " + DownloadVariable + " is off")

// download gets a Postgres. Test binaries of several packages start together, so one downloads and the others wait.
func (p places) download(ctx context.Context, log io.Writer, major int) (string, error) {
	if p.downloads.Dir == "" || os.Getenv(DownloadVariable) == "off" {
		return "", errNoDownload
	}
	if err := os.MkdirAll(p.downloads.Dir, 0o755); err != nil {
		return "", fmt.Errorf("make a directory for Postgres: %w", err)
	}
	if !ours(p.downloads.Dir) { // in /var/tmp any user may have made it
		return "", fmt.Errorf("%s belongs to a different user, or others may write there: remove it", p.downloads.Dir)
	}
	unlock, err := lockAt(filepath.Join(p.downloads.Dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if dir, ok := p.find(major); ok {
		return dir, nil
	}
	p.downloads.Tidy()
	return p.downloads.Get(ctx, log, wanted(major))
}

// lockAt returns when no other process has the file locked.
func lockAt(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a lock: %w", err)
	}
	if err := lockFile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for a lock: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
