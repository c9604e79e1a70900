package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/semver"
)

// version is a version of the site, as in versions.json.
type version struct {
	Version  string   `json:"version"`
	Released bool     `json:"released"`
	Latest   bool     `json:"latest"`
	Pages    []string `json:"pages"` // so that the menu leads to the same page, if that version has it
}

// publish adds the version to the versions of dir. At most one of them is not a release: the newest build.
func (s *site) publish(dir string) error {
	all, err := readVersions(dir)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(v version) bool {
		gone := v.Version == s.version
		if !gone && !v.Released && !s.released {
			gone = true
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, filepath.FromSlash(v.Version))))
		}
		return gone
	})
	if err != nil {
		return err
	}
	own := version{Version: s.version, Released: s.released}
	for _, p := range s.all() {
		own.Pages = append(own.Pages, p.Path)
	}
	all = append(all, own)
	slices.SortFunc(all, newestFirst)
	latest := markLatest(all)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := save(filepath.Join(dir, "versions.json"), append(text, '\n')); err != nil {
		return err
	}
	return errors.Join(redirect(dir, latest), list(dir, all, latest), s.atRoot(dir, latest))
}

func readVersions(dir string) (all []version, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "versions.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// newestFirst orders releases by their numbers, after the version that is not a release.
func newestFirst(a, b version) int {
	if a.Released != b.Released {
		if a.Released {
			return 1
		}
		return -1
	}
	return semver.Compare(b.Version, a.Version)
}

// markLatest chooses the newest release that is not a prerelease, or else the first of all.
func markLatest(all []version) version {
	at := slices.IndexFunc(all, func(v version) bool { return v.Released && semver.Prerelease(v.Version) == "" })
	at = max(at, 0)
	for n := range all {
		all[n].Latest = n == at
	}
	return all[at]
}

// redirect makes a page below latest for every page of a version.
func redirect(dir string, to version) error {
	if err := os.RemoveAll(filepath.Join(dir, "latest")); err != nil {
		return err
	}
	root := filepath.Join(dir, filepath.FromSlash(to.Version))
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".html" {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return stub(dir, "latest/"+filepath.ToSlash(name), to.Version+"/"+filepath.ToSlash(name))
	})
	return errors.Join(err, stub(dir, "index.html", to.Version+"/index.html"))
}

// stub makes a page at from that redirects to the page to.
func stub(dir, from, to string) error {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "redirect.html", relative(from, to)); err != nil {
		return err
	}
	return save(filepath.Join(dir, filepath.FromSlash(from)), b.Bytes())
}

// list makes the page of versions, for those without JavaScript.
func list(dir string, all []version, latest version) error {
	var b bytes.Buffer
	shown := struct {
		All    []version
		Latest string
	}{all, latest.Version}
	if err := templates.ExecuteTemplate(&b, "versions.html", shown); err != nil {
		return err
	}
	return save(filepath.Join(dir, "versions.html"), b.Bytes())
}

// atRoot writes the files beside the versions, if this is the latest of them.
func (s *site) atRoot(dir string, latest version) error {
	if latest.Version != s.version {
		return nil
	}
	return save(filepath.Join(dir, "llms.txt"), []byte(s.llms(s.version+"/")))
}
