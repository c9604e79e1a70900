package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"
)

// Every link and every anchor of the built site leads somewhere: to a page, to a heading, to a file of the repository,
// or to a name that its package exports.
func TestLinksOfTheSiteLeadSomewhere(t *testing.T) {
	t.Parallel()
	s, dir := built(t)
	pages := readPages(t, os.DirFS(dir))
	if len(pages) < 2*len(s.pages) { // each once more below latest
		t.Fatalf("the site has %d pages of HTML, and %d of Markdown", len(pages), len(s.pages))
	}
	check := checker{files: s.files, ref: s.ref, names: readNames(s.files), site: os.DirFS(dir), pages: pages}
	for _, fault := range check.all() {
		t.Error(fault)
	}
	for _, kind := range []string{"page", "anchor", "file", "godoc", "elsewhere"} {
		if check.seen[kind] == 0 {
			t.Errorf("no link to a %s was followed", kind)
		}
	}
	t.Logf("followed %v", check.seen)
}

// A page loads nothing from elsewhere, and its own policy forbids it to the browser.
func TestPagesAskNoOtherOrigin(t *testing.T) {
	t.Parallel()
	_, dir := built(t)
	for name, page := range readPages(t, os.DirFS(dir)) {
		for _, fault := range page.foreign() {
			t.Errorf("%s: %s", name, fault)
		}
		if page.redirects {
			continue
		}
		if !strings.Contains(page.policy, "default-src 'none'") || strings.Contains(page.policy, "unsafe") ||
			strings.Contains(page.policy, ":") {
			t.Errorf("%s has the policy %q", name, page.policy)
		}
	}
	err := fs.WalkDir(staticFiles, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := staticFiles.ReadFile(name)
		for _, fault := range foreignText(name, string(text)) {
			t.Error(fault)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// htmlPage holds the links and the assets of a page of the site.
type htmlPage struct {
	links     []string // followed by a reader
	assets    []string // loaded by a browser
	ids       map[string]bool
	inline    []string // stopped by the policy
	policy    string
	redirects bool
}

func readPages(t *testing.T, site fs.FS) map[string]*htmlPage {
	t.Helper()
	pages := map[string]*htmlPage{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		text, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		tree, err := html.Parse(bytes.NewReader(text))
		if err != nil {
			return err
		}
		p := &htmlPage{ids: map[string]bool{}}
		for n := range tree.Descendants() {
			p.add(n)
		}
		pages[name] = p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func (p *htmlPage) add(n *html.Node) {
	if n.Type != html.ElementNode {
		return
	}
	set := map[string]string{}
	for _, a := range n.Attr {
		set[a.Key] = a.Val
		switch {
		case a.Key == "id":
			if p.ids[a.Val] {
				p.inline = append(p.inline, "there are two elements "+a.Val)
			}
			p.ids[a.Val] = true
		case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
			p.inline = append(p.inline, n.Data+" has "+a.Key)
		}
	}
	switch n.Data {
	case "a":
		p.links = append(p.links, set["href"])
	case "link":
		if slices.Contains([]string{"canonical", "alternate"}, set["rel"]) {
			p.links = append(p.links, set["href"])
		} else {
			p.assets = append(p.assets, set["href"])
		}
	case "script", "style":
		if n.FirstChild != nil {
			p.inline = append(p.inline, n.Data+" with text")
		}
		p.assets = append(p.assets, set["src"])
	case "img", "iframe", "source", "video", "audio", "embed", "object", "input", "form":
		for _, key := range []string{"src", "srcset", "data", "poster", "action"} {
			if set[key] != "" {
				p.assets = append(p.assets, set[key])
			}
		}
	case "meta":
		switch strings.ToLower(set["http-equiv"]) {
		case "content-security-policy":
			p.policy = set["content"]
		case "refresh":
			p.redirects = true
			_, to, _ := strings.Cut(set["content"], "url=")
			p.links = append(p.links, to)
		}
	}
}

// foreign returns a fault for each asset that a page loads from elsewhere, or that its policy would stop.
func (p *htmlPage) foreign() (faults []string) {
	for _, asset := range p.assets {
		if u, err := url.Parse(asset); err != nil || u.Host != "" || u.Scheme != "" {
			faults = append(faults, "it loads "+asset)
		}
	}
	return append(faults, p.inline...)
}

var (
	loaded = regexp.MustCompile(`(?:url\(|@import|fetch\(|src ?=|import )\s*["'` + "`" +
		`]?\s*(?:https?:)?//[^"')]+`)
	styleFile = regexp.MustCompile(`\.(css|js|svg)$`)
)

func foreignText(name, text string) (faults []string) {
	if !styleFile.MatchString(name) {
		return nil
	}
	for _, m := range loaded.FindAllString(text, -1) {
		faults = append(faults, name+" loads "+m)
	}
	return faults
}

// checker follows the links of a site.
type checker struct {
	files fs.FS  // the repository
	ref   string // of the files that links lead to
	names names
	site  fs.FS
	pages map[string]*htmlPage
	seen  map[string]int // links, by their target
}

func (c *checker) all() (faults []string) {
	c.seen = map[string]int{}
	for name, page := range c.pages {
		for _, link := range append(page.links, page.assets...) {
			if link == "" {
				continue
			}
			if fault := c.follow(name, link); fault != "" {
				faults = append(faults, name+" links to "+link+": "+fault)
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// follow returns the reason why a link has no target, "" if it has one.
func (c *checker) follow(from, link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	switch at := u.Host + u.Path; {
	case u.Scheme == "" && u.Host == "":
		return c.inside(from, u)
	case u.Scheme != "https" && u.Scheme != "http":
		return "only the web is linked to"
	case strings.HasPrefix(at, "github.com/edda-go/edda"):
		return c.repository(strings.TrimPrefix(at, "github.com/edda-go/edda"), u.Fragment)
	case strings.HasPrefix(at, "pkg.go.dev/"+module):
		return c.godoc(strings.TrimPrefix(at, "pkg.go.dev/"+module), u.Fragment)
	case !strings.Contains(u.Host, "."):
		return "no host has this name"
	}
	c.seen["elsewhere"]++
	return ""
}

func (c *checker) inside(from string, u *url.URL) string {
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	info, err := fs.Stat(c.site, to)
	switch {
	case err != nil:
		return err.Error()
	case info.IsDir():
		return "a folder is no page on a disk"
	}
	c.seen["page"]++
	if u.Fragment == "" || c.pages[to] == nil {
		return ""
	}
	c.seen["anchor"]++
	if !c.pages[to].ids[u.Fragment] {
		return "the page has no such place"
	}
	return ""
}

var lineOfFile = regexp.MustCompile(`^L(\d+)(?:-L(\d+))?$`)

func (c *checker) repository(at, fragment string) string {
	parts := strings.SplitN(strings.TrimPrefix(at, "/"), "/", 3)
	if len(parts) < 3 {
		return map[bool]string{false: "the repository has no such page"}[at == ""]
	}
	kind, ref, file := parts[0], parts[1], parts[2]
	info, err := fs.Stat(c.files, file)
	switch {
	case err != nil:
		return err.Error()
	case kind == "edit" && ref == branch:
	case ref != c.ref:
		return "it is of another version than " + c.ref
	case (kind == "tree") != info.IsDir() || kind != "tree" && kind != "blob":
		return "a file is a blob, and a folder a tree"
	}
	c.seen["file"]++
	if fragment == "" {
		return ""
	}
	text, err := fs.ReadFile(c.files, file)
	if err != nil {
		return err.Error()
	}
	if m := lineOfFile.FindStringSubmatch(fragment); m != nil {
		var line int
		_, _ = fmt.Sscan(m[1], &line)
		return map[bool]string{false: "the file is shorter"}[line <= bytes.Count(text, []byte("\n"))]
	}
	p := page{text: text}
	p.parse()
	has := slices.ContainsFunc(p.Headings, func(h heading) bool { return h.ID == fragment })
	return map[bool]string{false: "the file has no such heading"}[has]
}

func (c *checker) godoc(at, fragment string) string {
	if strings.HasPrefix(at, "@") {
		_, at, _ = strings.Cut(at, "/")
	}
	dir := path.Join(".", at)
	for _, p := range c.names {
		if p.path == dir {
			c.seen["godoc"]++
			return map[bool]string{false: "the package exports no such name"}[fragment == "" || p.names[fragment]]
		}
	}
	if files, err := fs.Glob(c.files, dir+"/*.go"); err != nil || len(files) == 0 || fragment != "" {
		return "there is no such package"
	}
	return ""
}

// The checks must detect every kind of dead link.
func TestDeadLinksAreSeen(t *testing.T) {
	t.Parallel()
	from := small(map[string]string{"doc/x.md": "# X\n\n## Here\n"})
	site := fstest.MapFS{"v/a/b.html": {}, "v/c.html": {}}
	check := checker{files: from.files, ref: "v0.1.0", names: readNames(from.files), site: site, seen: map[string]int{},
		pages: map[string]*htmlPage{"v/a/b.html": {ids: map[string]bool{"in": true}}, "v/c.html": {}}}
	const web, doc = "https://github.com/edda-go/edda", "https://pkg.go.dev/github.com/edda-go/edda"
	for link, want := range map[string]string{
		"b.html": "", "#in": "", "b.html#in": "", "../c.html": "", "../d.html": "not exist", "#out": "no such place",
		"../c.html#in": "no such place", "../a": "folder", "mailto:a@b.c": "only the web",
		"https://nowhere/x": "no host",
		web:                 "", web + "/blob/v0.1.0/bus/bus.go": "", web + "/tree/v0.1.0/bus": "",
		web + "/blob/v0.1.0/bus":           "is a blob",
		web + "/blob/v0.1.0/bus/bus.go#L3": "", web + "/blob/v0.1.0/bus/bus.go#L30": "shorter",
		web + "/blob/v0.1.0/gone.go": "not exist", web + "/blob/v0.2.0/bus/bus.go": "another version",
		web + "/blob/v0.1.0/doc/x.md#here": "", web + "/blob/v0.1.0/doc/x.md#there": "no such heading",
		web + "/edit/main/doc/x.md": "", web + "/wiki": "no such page", doc + "/bus": "", doc + "/bus#Bus.Run": "",
		doc + "@v0.1.0/bus#Bus": "", doc + "/bus#Gone": "no such name", doc + "/sub": "no such package",
	} {
		if got := check.follow("v/a/b.html", link); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", link, got, want)
		}
	}
}

func TestForeignAssetsAreSeen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`<script src="x.js"></script>`: "", `<script src="https://a.example/x.js"></script>`: "it loads",
		`<script src="//a.example/x.js"></script>`: "it loads", `<img src="https://a.example/x.png">`: "it loads",
		`<link rel="stylesheet" href="https://a.example/x.css">`: "it loads", `<script>1</script>`: "with text",
		`<p style="color: red">`: "has style", `<p onclick="x()">`: "has onclick",
		`<a href="https://a.example">x</a>`: "",
		`<p id="a"><p id="a">`:              "two elements",
	} {
		pages := readPages(t, fstest.MapFS{"p.html": {Data: []byte(text)}})
		got := strings.Join(pages["p.html"].foreign(), "; ")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]int{
		`a { background: url("x.png") }`: 0, `a { background: url(https://a.example/x.png) }`: 1,
		`@import "//a.example/x.css";`: 1, "fetch(`https://a.example`)": 1, "fetch(`${root}versions.json`)": 0,
	} {
		if got := foreignText("x.css", text); len(got) != want {
			t.Errorf("%s: %q, want %d", text, got, want)
		}
	}
}
