package main

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// blocks renders the blocks for which the site does not use goldmark's renderer: headings that link to themselves, code
// with colours, and tables that scroll.
type blocks struct{}

func (b blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, b.heading)
	r.Register(ast.KindCodeBlock, b.code)
	r.Register(ast.KindFencedCodeBlock, b.code)
	r.Register(ast.KindCodeSpan, b.span)
	r.Register(kindScroller, b.scroller)
	r.Register(kindCorner, b.corner)
}

// heading renders a heading as a link to itself, unless it has a link in it.
func (blocks) heading(w util.BufWriter, text []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	h, ok := n.(*ast.Heading)
	if !ok {
		return ast.WalkContinue, nil
	}
	id, _ := h.AttributeString("id")
	linked := has(n, ast.KindLink)
	if in {
		_, _ = fmt.Fprintf(w, `<h%d id="%s">`, h.Level, id)
		if !linked {
			_, _ = fmt.Fprintf(w, `<a class="self" href="#%s">`, id)
		}
		return ast.WalkContinue, nil
	}
	if !linked {
		_, _ = w.WriteString("</a>")
	}
	_, _ = fmt.Fprintf(w, "</h%d>\n", h.Level)
	return ast.WalkContinue, nil
}

// shortSpan fits into a line of a phone, so that it need not be broken.
const shortSpan = 28

func (blocks) span(w util.BufWriter, text []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	if !in {
		return ast.WalkContinue, nil
	}
	code, class := plain(n, text), ""
	if utf8.RuneCountInString(code) <= shortSpan {
		class = ` class="short"`
	}
	_, _ = fmt.Fprintf(w, "<code%s>%s</code>", class, html.EscapeString(code))
	return ast.WalkSkipChildren, nil
}

func has(n ast.Node, kind ast.NodeKind) (found bool) {
	_ = ast.Walk(n, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		found = found || n.Kind() == kind
		return ast.WalkContinue, nil
	})
	return found
}

// code renders a block with its language, and with a mark if no test compiles it.
func (blocks) code(w util.BufWriter, text []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	if !in {
		return ast.WalkContinue, nil
	}
	code := strings.TrimRight(string(n.Lines().Value(text)), "\n") + "\n"
	language, fragment := "", false
	if fence, ok := n.(*ast.FencedCodeBlock); ok && fence.Info != nil {
		info := strings.Fields(string(fence.Info.Value(text)))
		language, fragment = info[0], len(info) > 1 && info[1] == "fragment"
	}
	if language == "" && isGo(code) {
		language, fragment = "go", true
	}
	_, _ = w.WriteString(`<div class="code">`)
	if name := languages[language]; name != "" {
		_, _ = fmt.Fprintf(w, `<p class="language">%s`, name)
		if fragment {
			_, _ = w.WriteString(` <span class="fragment">a fragment</span>`)
		}
		_, _ = w.WriteString("</p>")
	}
	_, _ = fmt.Fprintf(w, `<pre tabindex="0"><code>%s</code></pre></div>`+"\n", coloured(language, code))
	return ast.WalkSkipChildren, nil
}

// scroller stands around a table, which may be wider than a screen.
type scroller struct{ ast.BaseBlock }

var kindScroller = ast.NewNodeKind("Scroller")

func (*scroller) Kind() ast.NodeKind              { return kindScroller }
func (s *scroller) Dump(source []byte, level int) { ast.DumpHelper(s, source, level, nil, nil) }

func (blocks) scroller(w util.BufWriter, text []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	if in {
		_, _ = w.WriteString(`<div class="scroll" tabindex="0" role="group" aria-label="` +
			html.EscapeString(heads(n.FirstChild(), text)) + `">` + "\n")
	} else {
		_, _ = w.WriteString("</div>\n")
	}
	return ast.WalkContinue, nil
}

// heads names a table after the heads of its columns.
func heads(table ast.Node, text []byte) string {
	var names []string
	if head, ok := table.FirstChild().(*tables.TableHeader); ok {
		for cell := head.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if name := plain(cell, text); name != "" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return "Table"
	}
	return "Table: " + strings.Join(names, ", ")
}

// scroll puts every table of a tree into a scroller.
func scroll(tree ast.Node) {
	var found []ast.Node
	_ = ast.Walk(tree, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if in && n.Kind() == tables.KindTable {
			found = append(found, n)
		}
		return ast.WalkContinue, nil
	})
	for _, table := range found {
		around := &scroller{}
		table.Parent().ReplaceChild(table.Parent(), table, around)
		around.AppendChild(around, table)
		emptyCorners(table.FirstChild())
	}
}

// corner stands for a head without text, which must not be the head of a column.
type corner struct{ ast.BaseBlock }

var kindCorner = ast.NewNodeKind("Corner")

func (*corner) Kind() ast.NodeKind              { return kindCorner }
func (c *corner) Dump(source []byte, level int) { ast.DumpHelper(c, source, level, nil, nil) }

func (blocks) corner(w util.BufWriter, _ []byte, _ ast.Node, in bool) (ast.WalkStatus, error) {
	if in {
		_, _ = w.WriteString("<td></td>\n")
	}
	return ast.WalkContinue, nil
}

func emptyCorners(head ast.Node) {
	for cell := head.FirstChild(); cell != nil; {
		next := cell.NextSibling()
		if !cell.HasChildren() {
			head.ReplaceChild(head, cell, &corner{})
		}
		cell = next
	}
}
