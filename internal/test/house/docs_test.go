package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// a Markdown link to a file of the repository, and its anchor
	linked   = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)
	testName = regexp.MustCompile("`((?:Test|Example|Fuzz|Benchmark)[A-Z]\\w*)`")
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// Every link of a Markdown file leads to a file of the repository, and its anchor to a heading of that file.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range markdown(t, ".") {
		for _, m := range linked.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, page), ""), -1) {
			target, anchor := page, m[2]
			if m[1] != "" {
				target = beside(page, m[1])
			}
			switch {
			case !exists(target):
				t.Errorf("%s links to %s, which is not there", page, target)
			case anchor != "" && !anchors(read(t, target))[anchor]:
				t.Errorf("%s links to %s#%s, and %s has no such heading", page, m[1], anchor, target)
			}
		}
	}
}

// A page must not name a test that does not exist.
func TestPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	defined := map[string]bool{}
	sources(t, func(_ string, text []byte) {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz|Benchmark)\w+)\(`).FindAllSubmatch(text,
			-1) {
			defined[string(m[1])] = true
		}
	})
	for _, page := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(read(t, page), -1) {
			if !defined[m[1]] {
				t.Errorf("%s names %s, and there is no such test", page, m[1])
			}
		}
	}
}

// The index lists every page except the pages that a different index lists.
func TestIndexOfDocsListsEveryPage(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/README.md")
	for _, page := range pages(t) {
		name := strings.TrimPrefix(page, "docs/")
		if name == page || name == "README.md" || strings.Contains(name, "/decisions/0") {
			continue
		}
		if !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// anchors returns the anchors of the headings of a page.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(m[1]))] = true
	}
	return found
}

// pages returns the Markdown files that describe Edda as a whole.
func pages(t *testing.T) []string {
	t.Helper()
	return append(markdown(t, "docs"), "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
}

// markdown returns the Markdown files under dir.
func markdown(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err == nil && entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case err == nil && filepath.Ext(path) == ".md":
			found = append(found, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// beside returns the target of a link on page.
func beside(page, link string) string {
	return filepath.ToSlash(filepath.Join(filepath.Dir(page), link))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
