package release

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Directories and files of the archive.
const (
	native   = "package/native/"
	symlinks = native + "pg-symlinks.json"
)

// mostUnpacked bounds the unpacked size of one archive.
const mostUnpacked = 512 << 20

// link is a symbolic link that the archive lists in a file, because npm's archives cannot contain links.
type link struct {
	Source string `json:"source"` // the file
	Target string `json:"target"` // the link, in the same directory
}

// unpack writes the PostgreSQL in an archive into a new directory. It writes nothing outside of it.
func unpack(archive io.ReadSeeker, dir string) error {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	plain, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var links []link
	for files := tar.NewReader(io.LimitReader(plain, mostUnpacked)); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name, ours := strings.CutPrefix(header.Name, native)
		switch {
		case !ours || header.Typeflag != tar.TypeReg:
		case header.Name == symlinks:
			err = json.NewDecoder(files).Decode(&links)
		default:
			err = writeFile(root, filepath.FromSlash(name), files)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
	return errors.Join(makeLinks(root, links), openToAll(root))
}

// openToAll lets every user into the directories, whatever the umask is: root runs PostgreSQL as a different user.
func openToAll(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return root.Chmod(name, 0o755)
	})
}

// writeFile writes a file that every user may read, and execute if it is a program.
func writeFile(root *os.Root, name string, content io.Reader) (err error) {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(name, "bin"+string(filepath.Separator)) {
		mode = 0o755
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, content); err != nil {
		return err
	}
	return file.Chmod(mode) // whatever the umask is
}

func makeLinks(root *os.Root, links []link) error {
	for _, l := range links {
		target := filepath.FromSlash(strings.TrimPrefix(l.Target, "native/"))
		if err := root.Symlink(path.Base(l.Source), target); err != nil {
			return fmt.Errorf("link %s: %w", l.Target, err)
		}
	}
	return nil
}
