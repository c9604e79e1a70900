package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The texts of the log must not change: docs/reference/log.md has each of them, and no other.
func TestLogPageNamesEveryText(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/reference/log.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(edda: [^`]+)`").FindAllStringSubmatch(string(page), -1) {
		if slices.Contains(listed, row[1]) {
			t.Errorf("docs/reference/log.md has %q twice", row[1])
		}
		listed = append(listed, row[1])
	}
	logged := logTexts(t)
	for text, path := range logged {
		if !slices.Contains(listed, text) {
			t.Errorf("%s logs %q, which is not in docs/reference/log.md", path, text)
		}
	}
	for _, text := range listed {
		if logged[text] == "" {
			t.Errorf("docs/reference/log.md has %q, which nothing logs", text)
		}
	}
}

// logTexts returns the texts that the library logs, each with a file that logs it: the arguments that begin with
// "edda: ", except arguments of a function that makes an error.
func logTexts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	sources(t, func(path string, text []byte) {
		if isTest(path) || strings.HasPrefix(path, "cmd/") || strings.HasPrefix(path, "internal/test/chaos/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			called, _ := call.Fun.(*ast.SelectorExpr)
			for _, argument := range call.Args {
				text := joined(argument)
				if strings.HasPrefix(text, "edda: ") && called != nil && called.Sel.Name != "New" &&
					called.Sel.Name != "Errorf" {
					found[text] = path
				}
			}
			return true
		})
	})
	return found
}

// joined returns the text of a string literal, or of a sum of them, and "" for anything else.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		return joined(e.X) + joined(e.Y)
	}
	return ""
}
