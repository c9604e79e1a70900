package main

import (
	"bytes"
	"html/template"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// longLabel is too long for the navigation: the page is called there as the index calls it.
const longLabel = 28

// row is a line of a table: the pages that it links to, and its text about them.
type row struct {
	links []listed
	about template.HTML
}

// listed is a link of an index.
type listed struct{ file, text string }

// readIndex reads the sections from the tables of the index, and the pages that they list.
func (s *site) readIndex() {
	for n := s.index.tree.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				name, about, _ := strings.Cut(plain(n, s.index.text), ": ")
				s.sections = append(s.sections, &section{Name: name, About: about})
			}
		case *tables.Table:
			if len(s.sections) == 0 {
				s.fault("%s has a table before its first heading", indexPage)
				continue
			}
			s.addRows(s.sections[len(s.sections)-1], nil, s.rows(s.index, n))
		}
	}
	for _, section := range s.sections {
		if len(section.Pages) == 0 {
			s.fault("%s lists no page under %q", indexPage, section.Name)
			continue
		}
		section.Dir, _, _ = strings.Cut(section.Pages[0].Path, "/")
	}
}

// addRows adds the pages of a table to a section, below parent if there is one.
func (s *site) addRows(to *section, parent *page, rows []row) {
	for _, r := range rows {
		for _, l := range r.links {
			if s.byFile[l.file] != nil || path.Ext(l.file) != ".md" || !strings.HasPrefix(l.file, "docs/") {
				continue
			}
			p := s.page(l.file, pathOf(l.file))
			if p == nil {
				continue
			}
			p.Section, p.Parent, p.About, p.Label = to, parent, r.about, label(p.Title, l.text)
			s.pages = append(s.pages, p)
			if parent == nil {
				to.Pages = append(to.Pages, p)
			} else {
				parent.Children = append(parent.Children, p)
			}
			if path.Base(l.file) == "README.md" {
				s.addTables(to, p)
			}
		}
	}
}

// addTables adds the pages that an index below the first one lists.
func (s *site) addTables(to *section, parent *page) {
	for n := parent.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if table, ok := n.(*tables.Table); ok {
			s.addRows(to, parent, s.rows(parent, table))
		}
	}
}

func (s *site) rows(p *page, table *tables.Table) (rows []row) {
	for n := table.FirstChild(); n != nil; n = n.NextSibling() {
		if _, ok := n.(*tables.TableRow); !ok {
			continue
		}
		var r row
		_ = ast.Walk(n.FirstChild(), func(n ast.Node, in bool) (ast.WalkStatus, error) {
			if l, ok := n.(*ast.Link); ok && in {
				file, _, _ := strings.Cut(string(l.Destination), "#")
				r.links = append(r.links, listed{path.Join(path.Dir(p.File), file), plain(l, p.text)})
			}
			return ast.WalkContinue, nil
		})
		r.about = inline(n.LastChild(), p.text)
		rows = append(rows, r)
	}
	return rows
}

// label is how the navigation calls a page.
func label(title, listed string) string {
	if utf8.RuneCountInString(title) <= longLabel || strings.ContainsAny(listed[:1], "0123456789") {
		return title
	}
	return strings.ToUpper(listed[:1]) + listed[1:]
}

// inline renders the content of a cell without its links: the result is placed in a link or beside one.
func inline(cell ast.Node, text []byte) template.HTML {
	var b bytes.Buffer
	_ = ast.Walk(cell, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if in {
				template.HTMLEscape(&b, n.Value(text))
			}
		case *ast.CodeSpan:
			if in {
				b.WriteString("<code>")
			} else {
				b.WriteString("</code>")
			}
		}
		return ast.WalkContinue, nil
	})
	return template.HTML(b.String()) //nolint:gosec // escaped above
}
