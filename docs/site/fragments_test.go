package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/yuin/goldmark/ast"
)

var selector = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)`)

// theirs are names of a foreign package that has the same name as a package of Edda.
var theirs = []string{"watermill.NopLogger", "watermill.NewUUID", "watermill.NewShortUUID", "watermill.NewULID",
	"watermill.LoggerAdapter", "watermill.LogFields", "watermill.NewStdLogger", "watermill.NewSlogLogger"}

// No test compiles a fragment, nor a name in the prose. But a package of Edda has to export the names that they use.
func TestPagesNameWhatPackagesExport(t *testing.T) {
	t.Parallel()
	s, err := read(workTree(t.Context(), "../.."))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, p := range s.all() {
		for _, name := range unknown(s.names, p, &seen) {
			t.Errorf("%s names %s, which is not there", p.File, name)
		}
	}
	if seen < 500 {
		t.Errorf("the pages name %d things, want hundreds", seen)
	}
}

// unknown are the names on a page that their packages do not export. It counts all that it has looked at.
func unknown(names names, p *page, seen *int) (gone []string) {
	_ = ast.Walk(p.tree, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		switch n.(type) {
		case *ast.CodeSpan, *ast.CodeBlock, *ast.FencedCodeBlock:
		default:
			return ast.WalkContinue, nil
		}
		if !in {
			return ast.WalkContinue, nil
		}
		for _, m := range selector.FindAllStringSubmatch(plain(n, p.text), -1) {
			if names[m[1]].names == nil || slices.Contains(theirs, m[0]) {
				continue
			}
			*seen++
			if !names[m[1]].names[m[2]] {
				gone = append(gone, m[0])
			}
		}
		return ast.WalkContinue, nil
	})
	return gone
}

func TestNamesThatAreGoneAreSeen(t *testing.T) {
	t.Parallel()
	s, err := read(small(map[string]string{"docs/guide/a.md": "# A\n\n`bus.Bus` and `bus.Gone`.\n\n" +
		"```go fragment\nb := bus.New(x.Y)\n```\n\n    bus.Old(ctx)\n\nIn prose bus.Prose is none.\n"}))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	got := unknown(s.names, s.pages[0], &seen)
	if want := []string{"bus.Gone", "bus.New", "bus.Old"}; !slices.Equal(got, want) || seen != 4 {
		t.Errorf("of %d names %q are gone, want %q of 4", seen, got, want)
	}
}
