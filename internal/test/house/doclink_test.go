package house

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// linkLike matches texts that their author meant as a link to a symbol. If there is no such symbol, pkg.go.dev shows
// the brackets.
var linkLike = regexp.MustCompile(`(?:^|[\s(])(\[\*?(?:[a-z][\w/]*\.)?[A-Z]\w*(?:\.\w+)*\])`)

// A name in brackets is a link on pkg.go.dev, unless it is misspelt or its package is not imported.
func TestDocLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	places := token.NewFileSet()
	packages := map[string][]*ast.File{}
	sources(t, func(name string, text []byte) {
		if isTest(name) {
			return
		}
		file, err := parser.ParseFile(places, filepath.FromSlash(name), text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		packages[path.Dir(name)] = append(packages[path.Dir(name)], file)
	})
	links := 0
	for dir, files := range packages {
		p, err := doc.NewFromFiles(places, files, path.Join("github.com/edda-go/edda", dir), doc.AllDecls)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, text := range docsOf(p) {
			for _, block := range p.Parser().Parse(text).Content {
				links += lostLinks(block, func(lost string) { t.Errorf("%s: %s leads nowhere", dir, lost) })
			}
		}
	}
	if links == 0 {
		t.Error("no comment has a link: nothing was looked at")
	}
}

// docsOf returns the comments of a package and of all its declarations.
func docsOf(p *doc.Package) []string {
	all := []string{p.Doc}
	values := func(of []*doc.Value) {
		for _, v := range of {
			all = append(all, v.Doc)
		}
	}
	functions := func(of []*doc.Func) {
		for _, f := range of {
			all = append(all, f.Doc)
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, one := range p.Types {
		all = append(all, one.Doc)
		values(one.Consts)
		values(one.Vars)
		functions(one.Funcs)
		functions(one.Methods)
	}
	return all
}

// lostLinks counts the links of a block, and calls report with each text that only looks like a link.
func lostLinks(block comment.Block, report func(string)) (links int) {
	text := func(of []comment.Text) {
		for _, one := range of {
			switch one := one.(type) {
			case *comment.DocLink:
				links++
			case comment.Plain:
				for _, lost := range linkLike.FindAllStringSubmatch(string(one), -1) {
					report(strings.TrimSpace(lost[1]))
				}
			}
		}
	}
	switch block := block.(type) {
	case *comment.Paragraph:
		text(block.Text)
	case *comment.Heading:
		text(block.Text)
	case *comment.List:
		for _, item := range block.Items {
			for _, inner := range item.Content {
				links += lostLinks(inner, report)
			}
		}
	}
	return links
}
