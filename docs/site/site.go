package main

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// Where the project lives, for links that leave the site.
const (
	module     = "github.com/edda-go/edda"
	repository = "https://" + module
	branch     = "main"
	godoc      = "https://pkg.go.dev/"
	indexPage  = "docs/README.md"
	homePage   = "README.md"
)

// site is all pages of one version.
type site struct {
	source
	sections []*section
	pages    []*page // in the order of reading, without the home page and the index
	home     *page
	index    *page
	byFile   map[string]*page // by the path of their Markdown file
	names    names
	images   map[string]bool // files of the repository that pages show
	faults   []error
}

// section is a table of the index.
type section struct {
	Name  string // Guide
	About string // build something
	Dir   string // guide
	Pages []*page
}

// page is one Markdown file and its rendered form.
type page struct {
	File     string // docs/guide/web.md
	Path     string // guide/web.html
	Title    string
	Label    string        // in the navigation
	About    template.HTML // the last cell of its row in the index
	Section  *section
	Parent   *page
	Children []*page
	Prev     *page
	Next     *page
	Body     template.HTML
	Headings []heading
	parts    []part
	text     []byte
	tree     ast.Node
}

// heading is a place of a page that a link may name.
type heading struct {
	ID, Text string
	Level    int
}

// part is the text under one heading, for the search.
type part struct {
	Heading    heading
	Text, Code string
}

// read makes all pages of a source. Its error has every fault.
func read(from source) (*site, error) {
	s := &site{source: from, byFile: map[string]*page{}, images: map[string]bool{}}
	s.names = readNames(from.files)
	s.home = s.page(homePage, "index.html")
	s.index = s.page(indexPage, "contents.html")
	if err := errors.Join(s.faults...); err != nil {
		return nil, err
	}
	s.home.cutAt("Where to go next") // the site has its own answer
	s.readIndex()
	s.link()
	s.listsAll()
	for _, p := range s.all() {
		s.render(p)
	}
	return s, errors.Join(s.faults...)
}

func (s *site) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Errorf(format, args...))
}

// all are the pages that have a Markdown file.
func (s *site) all() []*page { return append([]*page{s.home, s.index}, s.pages...) }

// page reads a file. If the file does not exist, page records a fault and returns nil.
func (s *site) page(file, to string) *page {
	text, err := fs.ReadFile(s.files, file)
	if err != nil {
		s.fault("%w", err)
		return nil
	}
	p := &page{File: file, Path: to, text: text}
	p.parse()
	s.byFile[file] = p
	return p
}

// pathOf is where the page of a file lies on the site.
func pathOf(file string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(file, "docs/"), ".md")
	if path.Base(name) == "README" {
		name = path.Join(path.Dir(name), "index")
	}
	return name + ".html"
}

// link gives each page the one before and the one behind it.
func (s *site) link() {
	for n, p := range s.pages {
		if n > 0 {
			p.Prev, s.pages[n-1].Next = s.pages[n-1], p
		}
	}
}

// listsAll finds pages that no table lists.
func (s *site) listsAll() {
	err := fs.WalkDir(s.files, "docs", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case path.Ext(file) == ".md" && s.byFile[file] == nil:
			s.fault("%s is in no table of %s", file, indexPage)
		}
		return nil
	})
	if err != nil {
		s.fault("%w", err)
	}
}

// Root leads from a page to the folder of its version.
func (p *page) Root() string { return strings.Repeat("../", strings.Count(p.Path, "/")) }

// Markdown is the path of the text that the page was made from.
func (p *page) Markdown() string { return strings.TrimSuffix(p.Path, ".html") + ".md" }

// Within reports whether a page is this one or one below it.
func (p *page) Within(other *page) bool {
	return p == other || p != nil && p.Parent != nil && p.Parent.Within(other)
}

// Ref is for templates.
func (s source) Ref() string { return s.ref }

// longTab is too long a name for the bar of sections.
const longTab = 14

// Tab is the name of a section in the bar: that of its folder, if its own is long.
func (s *section) Tab() string {
	if utf8.RuneCountInString(s.Name) <= longTab || s.Dir == "" {
		return s.Name
	}
	return strings.ToUpper(s.Dir[:1]) + s.Dir[1:]
}

// Lead returns the subject of a section, as a sentence.
func (s *section) Lead() string {
	if s.About == "" {
		return ""
	}
	return strings.ToUpper(s.About[:1]) + s.About[1:] + "."
}
