package pgtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Statements prepares every statement of file, a .sql file in the directory of the test, and counts in the Go files
// beside it how often each is used: in a call like sql.Get("name"), exactly once.
func Statements(t *testing.T, pool *pgxpool.Pool, schema pg.Schema, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	statements := pg.Load(string(text), schema)
	conn, err := Direct(t, pool).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	uses := countUses(t, filepath.Dir(file))
	for name, sql := range statements {
		if _, err := conn.Conn().Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: prepare %s: %v\n%s", file, name, err, sql)
		}
		if len(uses[name]) != 1 {
			t.Errorf("%s: %s is used %d times, want once %s", file, name, len(uses[name]), uses[name])
		}
	}
}

// countUses finds the calls of a method Get with one string literal and returns their positions.
func countUses(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	uses, set := map[string][]string{}, token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if statement, ok := getCall(n); ok {
				where := set.Position(n.Pos())
				uses[statement] = append(uses[statement], fmt.Sprintf("%s:%d", where.Filename, where.Line))
			}
			return true
		})
	}
	return uses
}

func getCall(n ast.Node) (name string, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return "", false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Get" {
		return "", false
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	name, err := strconv.Unquote(literal.Value)
	return name, err == nil
}
