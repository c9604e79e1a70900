package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// source is the input of a site.
type source struct {
	files    fs.FS  // the repository
	version  string // the label, which is a folder of the site too
	ref      string // the commit or tag that links to files lead to
	released bool   // it is the tag of a release
}

// workTree is the repository at root, as it is on the disk.
func workTree(ctx context.Context, root string) source {
	s := source{files: os.DirFS(root), version: "dev", ref: branch}
	if label, err := git(ctx, root, "describe", "--tags", "--match", "v[0-9]*", "--always", "--dirty"); err == nil {
		s.version = label
	}
	if commit, err := git(ctx, root, "rev-parse", "HEAD"); err == nil {
		s.ref = commit
	}
	s.released = isRelease(ctx, root, s.version)
	return s
}

// shortCommit is enough of a commit to be its label.
const shortCommit = 12

// committed is the repository as it was at a tag or a commit. The files lie in a temporary folder, which done removes.
func committed(ctx context.Context, root, version string) (s source, done func(), err error) {
	if strings.Contains(version, "/") { // the tag of a module below
		return source{}, nil, fmt.Errorf("version %s: it would be a folder in a folder", version)
	}
	commit, err := git(ctx, root, "rev-parse", "--verify", version+"^{commit}")
	if err != nil {
		return source{}, nil, fmt.Errorf("version %s: %w", version, err)
	}
	archive, err := gitBytes(ctx, root, "archive", "--format=tar", commit)
	if err != nil {
		return source{}, nil, err
	}
	dir, err := os.MkdirTemp("", "edda-docs-")
	if err != nil {
		return source{}, nil, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	if err := unpack(archive, dir); err != nil {
		done()
		return source{}, nil, err
	}
	s = source{files: os.DirFS(dir), version: commit[:shortCommit], ref: commit}
	if isRelease(ctx, root, version) {
		s.version, s.ref, s.released = version, version, true
	}
	return s, done, nil
}

// isRelease reports whether a name is the tag of a release of Edda.
func isRelease(ctx context.Context, root, name string) bool {
	if !semver.IsValid(name) {
		return false
	}
	_, err := git(ctx, root, "show-ref", "--verify", "--quiet", "refs/tags/"+name)
	return err == nil
}

func unpack(archive []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		head, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case head.Typeflag != tar.TypeReg:
			continue
		}
		name := filepath.FromSlash(head.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := root.WriteFile(name, text, 0o600); err != nil {
			return err
		}
	}
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := gitBytes(ctx, root, args...)
	return strings.TrimSpace(string(out)), err
}

func gitBytes(ctx context.Context, root string, args ...string) ([]byte, error) {
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return out, nil
}
