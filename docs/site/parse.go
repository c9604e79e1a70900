package main

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown parses GitHub's Markdown. Cells are aligned by an attribute: the policy of the pages allows no style.
var markdown = goldmark.New(
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough, extension.Linkify, extension.TaskList),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
)

// parse reads the tree of a page, takes its title out of it, and gives each heading the id that GitHub gives it.
func (p *page) parse() {
	p.tree = markdown.Parser().Parse(text.NewReader(p.text))
	taken := map[string]int{}
	var title ast.Node
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			continue
		}
		found := heading{Text: plain(h, p.text), Level: h.Level}
		found.ID = slug(found.Text, taken)
		h.SetAttributeString("id", []byte(found.ID))
		if h.Level == 1 && title == nil {
			title, p.Title = h, found.Text
			continue
		}
		p.Headings = append(p.Headings, found)
	}
	if title != nil {
		p.tree.RemoveChild(p.tree, title)
	}
	p.split()
}

// slug is the name that GitHub gives to a heading.
func slug(title string, taken map[string]int) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(title))
	n := taken[name]
	taken[name]++
	if n > 0 {
		return fmt.Sprintf("%s-%d", name, n)
	}
	return name
}

// split divides the text of a page by its headings, for the search.
func (p *page) split() {
	p.parts = []part{{}}
	at := 0
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		last := &p.parts[len(p.parts)-1]
		switch n.(type) {
		case *ast.Heading:
			p.parts = append(p.parts, part{Heading: p.Headings[at]})
			at++
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			last.Code = strings.TrimSpace(last.Code + " " + plain(n, p.text))
		default:
			last.Text = strings.TrimSpace(last.Text + " " + plain(n, p.text))
		}
	}
}

// cutAt removes a heading of the second level, and everything after it.
func (p *page) cutAt(title string) {
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); !ok || h.Level != 2 || plain(h, p.text) != title {
			continue
		}
		for n != nil {
			next := n.NextSibling()
			p.tree.RemoveChild(p.tree, n)
			n = next
		}
		break
	}
	for n, h := range p.Headings {
		if h.Level == 2 && h.Text == title {
			p.Headings = p.Headings[:n]
			break
		}
	}
	p.split()
}

// plain is the text of a node without its marks, in one line.
func plain(n ast.Node, text []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if in {
				b.Write(n.Value(text))
			}
			if in && (n.SoftLineBreak() || n.HardLineBreak()) {
				b.WriteByte(' ')
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if in {
				b.Write(n.Lines().Value(text))
			}
		}
		if !in && n.Type() == ast.TypeBlock {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// rendered is the HTML of a page whose links are resolved.
func (p *page) rendered() (template.HTML, error) {
	var b strings.Builder
	if err := markdown.Renderer().Render(&b, p.text, p.tree); err != nil {
		return "", fmt.Errorf("%s: %w", p.File, err)
	}
	return template.HTML(b.String()), nil //nolint:gosec // goldmark escapes, and HTML in pages is left out
}
