package main

import (
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// render resolves the links of a page, and makes its HTML.
func (s *site) render(p *page) {
	var spans []*ast.CodeSpan
	_ = ast.Walk(p.tree, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if in {
				n.Destination = []byte(s.resolve(p, string(n.Destination)))
			}
			return ast.WalkContinue, nil
		case *ast.Image:
			if in {
				n.Destination = []byte(s.image(p, string(n.Destination)))
			}
		case *ast.CodeSpan:
			if in && !inLink(n) {
				spans = append(spans, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, span := range spans {
		s.explain(span, p.text)
	}
	scroll(p.tree)
	body, err := p.rendered()
	if err != nil {
		s.faults = append(s.faults, err)
	}
	p.Body = body
}

func inLink(n ast.Node) bool {
	for ; n != nil; n = n.Parent() {
		if n.Kind() == ast.KindLink || n.Kind() == ast.KindHeading {
			return true
		}
	}
	return false
}

// explain makes a link to the Go documentation of a name such as bus.NewEndpoint.
func (s *site) explain(span *ast.CodeSpan, text []byte) {
	address := s.names.address(plain(span, text), s.atVersion())
	if address == "" {
		return
	}
	link := ast.NewLink()
	link.Destination = []byte(address)
	link.SetAttributeString("class", []byte("godoc"))
	span.Parent().ReplaceChild(span.Parent(), span, link)
	link.AppendChild(link, span)
}

// atVersion is the version of a module in addresses of its documentation, "" if it has not been released.
func (s *site) atVersion() string {
	if s.released {
		return "@" + s.version
	}
	return ""
}

// resolve returns the target of a page's link on the site: a page, or a file in the repository.
func (s *site) resolve(p *page, link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Path == "" {
		return link // the test of links looks at addresses
	}
	file := path.Join(path.Dir(p.File), u.Path)
	if to := s.byFile[file]; to != nil {
		u.Path = relative(p.Path, to.Path)
		return u.String()
	}
	return s.repositoryAddress(p, file, u.Fragment)
}

// repositoryAddress is where a file of this version is on the web.
func (s *site) repositoryAddress(p *page, file, fragment string) string {
	info, err := fs.Stat(s.files, file)
	if err != nil {
		s.fault("%s links to %s: %w", p.File, file, err)
		return ""
	}
	kind := "/blob/"
	if info.IsDir() {
		kind = "/tree/"
	}
	address := repository + kind + s.ref + "/" + file
	if fragment != "" {
		address += "#" + fragment
	}
	return address
}

// image records that a page shows a file, and returns the path of the file on the site.
func (s *site) image(p *page, link string) string {
	file := path.Join(path.Dir(p.File), link)
	if _, err := fs.Stat(s.files, file); err != nil {
		s.fault("%s shows %s: %w", p.File, file, err)
	}
	s.images[file] = true
	return relative(p.Path, strings.TrimPrefix(file, "docs/"))
}

// relative returns the relative link between two paths of the site.
func relative(from, to string) string {
	link, err := filepath.Rel(filepath.FromSlash(path.Dir(from)), filepath.FromSlash(to))
	if err != nil { // both are relative
		panic(err)
	}
	return filepath.ToSlash(link)
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```$")
	linkedTo = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// asMarkdown is the text of a page for programs that read: its links lead to Markdown files of the site.
func (s *site) asMarkdown(p *page) string {
	var b strings.Builder
	at := 0
	prose := func(text []byte) {
		b.Write(linkedTo.ReplaceAllFunc(text, func(m []byte) []byte {
			link := string(m[2 : len(m)-1])
			to := s.resolve(p, link)
			if to != link && !strings.Contains(to, "://") { // a page of the site
				to = strings.Replace(to, ".html", ".md", 1)
			}
			return []byte("](" + to + ")")
		}))
	}
	for _, block := range fence.FindAllIndex(p.text, -1) {
		prose(p.text[at:block[0]])
		b.Write(p.text[block[0]:block[1]])
		at = block[1]
	}
	prose(p.text[at:])
	return b.String()
}
