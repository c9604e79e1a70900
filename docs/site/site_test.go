package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// built is the site of the work tree.
func built(t *testing.T) (s *site, dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := settings{root: "../..", out: dir}.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// small is a repository with as many pages as a test needs.
func small(pages map[string]string) source {
	files := fstest.MapFS{
		"README.md":       {Data: []byte("# Small\n\nA library.\n")},
		"docs/README.md":  {Data: []byte(index("[a](guide/a.md)"))},
		"docs/guide/a.md": {Data: []byte("# A\n\nText.\n")},
		"bus/bus.go":      {Data: []byte("package bus\n\ntype Bus struct{ Name string }\n\nfunc (b *Bus) Run() {}\n")},
	}
	for name, text := range pages {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return source{files: files, version: "v0.1.0", ref: "v0.1.0", released: true}
}

// index is a page that lists pages in a section.
func index(links ...string) string {
	rows := "| " + strings.Join(links, " | it |\n| ") + " | it |\n"
	return "# Pages\n\n## Guide: build\n\n| page | about |\n|---|---|\n" + rows
}

func body(t *testing.T, page string) string {
	t.Helper()
	s, err := read(small(map[string]string{"docs/guide/a.md": page}))
	if err != nil {
		t.Fatal(err)
	}
	return string(s.pages[0].Body)
}

// The tables of docs/README.md are the only list of pages: the navigation has the same pages in the same order.
func TestNavigationIsTheIndex(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	rows := bytes.Join(regexp.MustCompile(`(?m)^\|.*$`).FindAll(index, -1), nil)
	for _, m := range regexp.MustCompile(`\]\(([^)]*)\.md\)`).FindAllSubmatch(rows, -1) {
		if name := string(m[1]); !strings.HasPrefix(name, "../") {
			want = append(want, regexp.MustCompile(`README$`).ReplaceAllString(name, "index")+".html")
		}
	}
	s, dir := built(t)
	text, err := os.ReadFile(filepath.Join(dir, s.version, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	_, menu, _ := bytes.Cut(text, []byte(`id="menu"`))
	menu, _, _ = bytes.Cut(menu, []byte("</nav>"))
	var got []string
	for _, m := range regexp.MustCompile(`<li><a href="([^"]*)"`).FindAllSubmatch(menu, -1) {
		got = append(got, string(m[1]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the navigation has\n%q, want\n%q", got, want)
	}
	read := slices.DeleteFunc(slices.Clone(s.pages), func(p *page) bool { return p.Parent != nil })
	if !slices.EqualFunc(read, want, func(p *page, path string) bool { return p.Path == path }) {
		t.Error("the pages turn in another order than that of the index")
	}
	for n, p := range s.pages {
		if n > 0 && (p.Prev != s.pages[n-1] || s.pages[n-1].Next != p) {
			t.Errorf("%s is not behind %s", p.Path, s.pages[n-1].Path)
		}
	}
}

// An index below the index lists its pages, and they are below it.
func TestIndexesNest(t *testing.T) {
	t.Parallel()
	s, err := read(small(map[string]string{
		"docs/README.md":         index("[a](guide/a.md)", "[more](guide/m/README.md)"),
		"docs/guide/m/README.md": "# More\n\n| | |\n|---|---|\n| [1](one.md) | One |\n",
		"docs/guide/m/one.md":    "# One\n\n[up](README.md) and [home](../../../README.md)\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	one := s.byFile["docs/guide/m/one.md"]
	above := one.Parent
	if above == nil || above.Path != "guide/m/index.html" || !one.Within(above) || above.Within(one) {
		t.Errorf("one is below %+v", above)
	}
	for _, link := range []string{`href="index.html"`, `href="../../index.html"`} {
		if !strings.Contains(string(one.Body), link) {
			t.Errorf("%s has not %s", one.Body, link)
		}
	}
}

func TestTabsAreShort(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"Guide": "Guide", "Coming from something else": "Comparison"} {
		if got := (&section{Name: name, Dir: "comparison"}).Tab(); got != want {
			t.Errorf("the tab of %q is %q, want %q", name, got, want)
		}
	}
}

// Content that the site would lack is a fault, and nothing is built.
func TestFaultsOfPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, want string }{
		"a page in no table":   {"docs/guide/b.md", "# B\n", "docs/guide/b.md is in no table"},
		"a link to no file":    {"docs/guide/a.md", "# A\n\n[x](../../gone.go)\n", "docs/guide/a.md links to gone.go"},
		"a link to no page":    {"docs/guide/a.md", "# A\n\n[x](b.md)\n", "docs/guide/a.md links to docs/guide/b.md"},
		"no picture":           {"docs/guide/a.md", "# A\n\n![x](x.png)\n", "docs/guide/a.md shows docs/guide/x.png"},
		"a page that is not":   {"docs/README.md", index("[a](guide/a.md)", "[b](b.md)"), "docs/b.md"},
		"a section of nothing": {"docs/README.md", index("[a](guide/a.md)") + "\n## H: c\n", `no page under "H"`},
	} {
		_, err := read(small(map[string]string{c.file: c.text}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestBlocksOfCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
		without    string
	}{
		"compiled":         {"```go\nb, err := bus.New(pool)\n```", `<p class="language">Go</p>`, "fragment"},
		"marked":           {"```go fragment\nb.Send(…)\n```", `a fragment</span></p>`, ""},
		"indented Go":      {"    b, err := bus.New(pool, …)\n    return err\n", `a fragment</span></p>`, ""},
		"indented command": {"    go run . 9\n", `<code>go run . 9`, "language"},
		"indented output":  {"    order 9: 1990 cents (of 2000) are paid\n", "<code>order 9", "language"},
		"SQL":              {"```sql\nSELECT 1;\n```", `<p class="language">SQL</p>`, "fragment"},
		"foreign text":     {"    <script>alert(1)</script>\n", "&lt;script&gt;", "<script>"},
		"HTML":             {"<script>alert(1)</script>\n", "omitted", "<script>"},
		"colours":          {"```go\nreturn \"x\"\n```", `<span class="k">return</span>`, "style="},
	} {
		got := body(t, "# A\n\n"+c.text+"\n")
		if !strings.Contains(got, c.want) || c.without != "" && strings.Contains(got, c.without) {
			t.Errorf("%s: %s, want %q and not %q", name, got, c.want, c.without)
		}
	}
}

// A name of a package is a link to its documentation, in the version of the site.
func TestNamesLinkToTheirDocumentation(t *testing.T) {
	t.Parallel()
	const at = `href="https://pkg.go.dev/github.com/edda-go/edda@v0.1.0/bus#`
	for text, want := range map[string]string{
		"`bus.Bus`": at + `Bus"`, "`bus.Bus.Run`": at + `Bus.Run"`, "`bus.Bus.Name`": at + `Bus.Name"`,
		"`bus.Bus{Name: 1}`": at + `Bus"`, "`bus.Gone`": "", "`b.Run`": "", "`bus.run`": "",
		"[`bus.Bus`](../README.md)": "",
	} {
		got := body(t, "# A\n\nIt is "+text+".\n")
		if want == "" && strings.Contains(got, "pkg.go.dev") || !strings.Contains(got, want) {
			t.Errorf("%s became %s, want %q", text, got, want)
		}
	}
}

func TestHeadingsHaveTheNamesOfGitHub(t *testing.T) {
	t.Parallel()
	got := body(t, "# A\n\n## What `bus.New` does, and why\n\n## Two\n\n## Two\n\n### [L](../README.md) é_1\n")
	for _, want := range []string{`id="what-busnew-does-and-why"`, `id="two"`, `id="two-1"`, `id="l-é_1"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s has not %s", got, want)
		}
	}
	if strings.Count(got, `class="self"`) != 3 {
		t.Errorf("%s: three headings may be links", got)
	}
}

// Programs that read get every page, with links that work where the text lies.
func TestTextForProgramsIsWhole(t *testing.T) {
	t.Parallel()
	s, dir := built(t)
	root := filepath.Join(dir, s.version)
	lists := map[string]string{"llms.txt": "", "../llms.txt": s.version + "/"}
	for file, prefix := range lists {
		text := contents(t, filepath.Join(root, file))
		for _, p := range s.pages {
			if !strings.Contains(text, "["+p.Title+"]("+prefix+p.Markdown()+")") {
				t.Errorf("%s does not list %s", file, p.Markdown())
			}
		}
	}
	for _, p := range s.pages {
		linksLead(t, root, p.Markdown())
	}
	linksLead(t, root, "llms-full.txt")
	full := contents(t, filepath.Join(root, "llms-full.txt"))
	for _, p := range s.pages {
		if first, _, _ := strings.Cut(string(p.text), "\n"); !strings.Contains(full, "\n"+first+"\n") {
			t.Errorf("llms-full.txt has not %s", p.Markdown())
		}
	}
}

// linksLead follows the links of a text to other texts of a version.
func linksLead(t *testing.T, root, file string) {
	t.Helper()
	text := contents(t, filepath.Join(root, file))
	for _, m := range linkedTo.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		to, _, _ := strings.Cut(m[1], "#")
		if to == "" || strings.Contains(to, "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, filepath.Dir(file), to)); err != nil {
			t.Errorf("%s links to %s: %v", file, m[1], err)
		}
	}
}

func TestLinksInTextForPrograms(t *testing.T) {
	t.Parallel()
	const page = "# A\n\n[a](https://a.example/x.html) [b](../README.md#b) [c](#c) [d](../../bus/bus.go)\n\n" +
		"```sh\n[b](../README.md)\n```\n"
	s, err := read(small(map[string]string{"docs/guide/a.md": page}))
	if err != nil {
		t.Fatal(err)
	}
	want := "# A\n\n[a](https://a.example/x.html) [b](../contents.md#b) [c](#c) " +
		"[d](https://github.com/edda-go/edda/blob/v0.1.0/bus/bus.go)\n\n```sh\n[b](../README.md)\n```\n"
	if got := s.asMarkdown(s.pages[0]); got != want {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Files copied from other projects are identical to their releases.
func TestCopiesArePinned(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		// minisearch 7.2.0, dist/umd/index.js
		"static/minisearch.js": "03c27931eb603af1d3358579e9885eafdb6a2f5fa9929557b3e77d7e99d06d03",
		// @fontsource-variable/inter 5.3.0, files/inter-latin-wght-normal.woff2
		"static/inter.woff2": "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62",
		// @fontsource-variable/jetbrains-mono 5.3.0, files/jetbrains-mono-latin-wght-normal.woff2
		"static/jetbrains-mono.woff2": "18be452724bfdc236c074ca94a249a7f41a86752c7d04ab258ce9ed5651f6a7e",
	} {
		text, err := staticFiles.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has the sum %x, want %s", file, sum, want)
		}
		license := strings.TrimSuffix(file, filepath.Ext(file)) + ".LICENSE"
		if _, err := fs.Stat(staticFiles, license); err != nil {
			t.Error(err)
		}
	}
}

// While it is served, a page that has changed is built again.
func TestServedPagesFollowTheirFiles(t *testing.T) {
	t.Parallel()
	root := repositoryOf(t)
	set := settings{root: root, out: t.TempDir()}
	s, err := set.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	handler := set.handler(t.Context())
	get := func() string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+s.version+"/guide/a.html", nil))
		return w.Body.String()
	}
	if first := get(); !strings.Contains(first, "Text.") {
		t.Fatalf("the page is %s", first)
	}
	file := filepath.Join(root, "docs", "guide", "a.md")
	if err := os.WriteFile(file, []byte("# A\n\nOther words.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(file, later, later); err != nil {
		t.Fatal(err)
	}
	if second := get(); !strings.Contains(second, "Other words.") {
		t.Errorf("the page is still %s", second)
	}
}
