package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repositoryOf is a git repository of a small project, without a commit.
func repositoryOf(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := small(nil).files
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return save(filepath.Join(root, name), text)
	})
	if err != nil {
		t.Fatal(err)
	}
	inRepository(t, root, "init", "--quiet", "--initial-branch=main")
	return root
}

func inRepository(t *testing.T, root string, args ...string) {
	t.Helper()
	args = append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)
	if _, err := git(t.Context(), root, args...); err != nil {
		t.Fatal(err)
	}
}

// release commits a text of the page and gives it a tag.
func release(t *testing.T, root, version, text string) {
	t.Helper()
	page := "# A\n\n" + text + "\n\n[bus](../../bus/bus.go)\n"
	if err := save(filepath.Join(root, "docs", "guide", "a.md"), []byte(page)); err != nil {
		t.Fatal(err)
	}
	inRepository(t, root, "add", ".")
	inRepository(t, root, "commit", "--quiet", "-m", version)
	inRepository(t, root, "tag", version)
}

// Versions stand beside each other, older ones can be built at any time, and latest is the newest release.
func TestVersionsStandBesideEachOther(t *testing.T) {
	t.Parallel()
	root, out := repositoryOf(t), t.TempDir()
	release(t, root, "v0.9.0", "The ninth.")
	release(t, root, "v0.10.0", "The tenth.")
	release(t, root, "v0.11.0-rc.1", "A candidate.")
	build := func(version string) string {
		t.Helper()
		s, err := settings{root: root, out: out, version: version}.build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.version
	}
	build("v0.10.0")
	build("v0.11.0-rc.1")
	build("v0.9.0")
	inRepository(t, root, "commit", "--quiet", "--allow-empty", "-m", "more")
	before := build("")
	inRepository(t, root, "commit", "--quiet", "--allow-empty", "-m", "and more")
	now := build("HEAD")

	var all []version
	if err := json.Unmarshal([]byte(contents(t, filepath.Join(out, "versions.json"))), &all); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range all {
		got = append(got, v.Version)
		if v.Latest != (v.Version == "v0.10.0") {
			t.Errorf("%s is the latest: %v", v.Version, v.Latest)
		}
		if !slices.Contains(v.Pages, "guide/a.html") {
			t.Errorf("%s has the pages %q", v.Version, v.Pages)
		}
	}
	if want := []string{now, "v0.11.0-rc.1", "v0.10.0", "v0.9.0"}; !slices.Equal(got, want) {
		t.Errorf("there are the versions %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(out, before)); before == now || err == nil {
		t.Errorf("the build %s is there beside %s", before, now)
	}
	for file, want := range map[string]string{
		"v0.9.0/guide/a.html":  "The ninth.",
		"v0.10.0/guide/a.html": "https://github.com/edda-go/edda/blob/v0.10.0/bus/bus.go",
		"latest/guide/a.html":  `url=../../v0.10.0/guide/a.html"`,
		"index.html":           `url=v0.10.0/index.html"`,
		"llms.txt":             "(v0.10.0/guide/a.md)",
		"versions.html":        `href="v0.9.0/index.html"`,
	} {
		if text := contents(t, filepath.Join(out, file)); !strings.Contains(text, want) {
			t.Errorf("%s has not %q:\n%s", file, want, text)
		}
	}
}

func TestAVersionThatIsNot(t *testing.T) {
	t.Parallel()
	root := repositoryOf(t)
	release(t, root, "v0.1.0", "The first.")
	for _, version := range []string{"v7.0.0", "tags/v0.1.0"} {
		_, err := settings{root: root, out: t.TempDir(), version: version}.build(t.Context())
		if err == nil || !strings.Contains(err.Error(), "version "+version) {
			t.Errorf("the error is %v", err)
		}
	}
}

// A module below the root has tags of its own, which are no releases of Edda.
func TestATagOfAModuleBelowIsNoRelease(t *testing.T) {
	t.Parallel()
	root := repositoryOf(t)
	release(t, root, "eddaotel/v0.1.0", "A module below.")
	if s := workTree(t.Context(), root); s.released || strings.Contains(s.version, "/") {
		t.Errorf("the work tree is version %s, released %t", s.version, s.released)
	}
	if isRelease(t.Context(), root, "eddaotel/v0.1.0") {
		t.Error("the tag of a module below is a release")
	}
}

// A site that is served keeps its address when a file changes.
func TestServingKeepsItsLabel(t *testing.T) {
	t.Parallel()
	root := repositoryOf(t)
	release(t, root, "v0.1.0", "The first.")
	set := settings{root: root, out: t.TempDir()}
	first, err := set.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set.label = first.version
	if err := save(filepath.Join(root, "docs", "guide", "a.md"), []byte("# A\n\nChanged.\n")); err != nil {
		t.Fatal(err)
	}
	second, err := set.build(t.Context())
	if err != nil || second.version != first.version {
		t.Errorf("the label was %s and is %s, %v", first.version, second.version, err)
	}
}
