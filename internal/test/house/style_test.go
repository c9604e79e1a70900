package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const mostLines, mostTestLines = 600, 900

// sources calls do with every Go file of the repository, including nested modules.
func sources(t *testing.T, do func(path string, text []byte)) {
	t.Helper()
	files(t, []string{".go"}, do)
}

// files calls do with every file of the repository whose name has an extension from the list.
func files(t *testing.T, extensions []string, do func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(extensions, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		do(filepath.ToSlash(path), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	sources(t, func(path string, text []byte) {
		limit := mostLines
		if isTest(path) {
			limit = mostTestLines
		}
		if lines := bytes.Count(text, []byte("\n")); lines > limit {
			t.Errorf("%s has %d lines, the limit is %d: find the second concept in it", path, lines, limit)
		}
	})
}

func TestFilesAreNamedAfterAConcept(t *testing.T) {
	t.Parallel()
	sources(t, func(path string, _ []byte) {
		switch filepath.Base(path) {
		case "utils.go", "util.go", "common.go", "helpers.go", "helper.go", "types.go", "misc.go":
			t.Errorf("%s is named after no concept", path)
		}
	})
}

// sqlText matches the beginning of a statement. Words of an error message begin in lower case.
var sqlText = regexp.MustCompile(`(?s)^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|LOCK|SET|BEGIN|MERGE)\s`)

// Rules that the compiler cannot check. Linters check some of them too; this test runs wherever go test does.
func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	eachNode(t, forbidden)
}

// eachNode reports the faults that find returns for the nodes of all files.
func eachNode(t *testing.T, find func(path string, n ast.Node) (fault string)) {
	t.Helper()
	sources(t, func(path string, text []byte) {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if fault := find(path, n); fault != "" {
				t.Errorf("%s: %s", files.Position(n.Pos()), fault)
			}
			return true
		})
	})
}

func forbidden(path string, n ast.Node) string {
	if _, ok := n.(*ast.GoStmt); ok && !isTest(path) && !isTool(path) &&
		!strings.HasPrefix(path, "internal/base/run/") {
		return "a bare go statement: use run.Group, so that somebody waits for it"
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	receiver, name := fmt.Sprint(function.X), function.Sel.Name
	switch {
	case receiver == "time" && name == "Sleep" && (isTest(path) || !isTool(path)):
		return "time.Sleep: wait for the event, use run.Sleep, or testing/synctest"
	case isTest(path) && (receiver == "t" || receiver == "b" || receiver == "f") && strings.HasPrefix(name, "Skip"):
		return "a test that skips: let it fail with the remedy"
	case receiver == "fmt" && strings.HasPrefix(name, "Sprint") && !isTest(path) && len(call.Args) > 0 &&
		isSQL(call.Args[0]):
		return "SQL made by fmt: put the statement into a .sql file"
	}
	return ""
}

// isTool distinguishes programs that measure and break things, which own their process, from the library.
func isTool(path string) bool {
	tools := slices.Concat(testTools, []string{"cmd", "examples"})
	return slices.ContainsFunc(tools, func(tool string) bool { return strings.HasPrefix(path, tool+"/") })
}

func isSQL(argument ast.Expr) bool {
	literal, ok := argument.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return false
	}
	text, err := strconv.Unquote(literal.Value)
	return err == nil && sqlText.MatchString(text)
}

// transactional are the packages whose transactions read rows that others committed while they waited, and so must be
// READ COMMITTED.
var transactional = []string{"bus", "scheduler", "persistence", "outbox", "internal/store/deadletter",
	"internal/store/lease", "internal/store/limit", "migrations", "cmd/edda"}

// A database or a role may have another default_transaction_isolation. pg.Pool and pg.ReadCommitted set the level;
// the test refuses calls that leave it to the default.
func TestTransactionsNameTheirLevel(t *testing.T) {
	t.Parallel()
	writes := writingStatements(t)
	eachNode(t, func(path string, n ast.Node) string {
		dir := filepath.ToSlash(filepath.Dir(path))
		if isTest(path) || !under(transactional, dir) {
			return ""
		}
		if name := rowOfPool(n); writes[dir+" "+name] {
			return "statement " + name + " writes, and Query and QueryRow of a pool are for what only reads: use " +
				"Row, Exec or SendBatch"
		}
		return unnamedLevel(path, n)
	})
}

// writingStatements returns the named statements that change rows, each after its directory and a blank.
func writingStatements(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, pack := range transactional {
		files, err := filepath.Glob(pack + "/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range strings.Split(string(text), "-- name: ")[1:] {
				name, sql, _ := strings.Cut(block, "\n")
				found[pack+" "+strings.TrimSpace(name)] = changesRows.MatchString(sql)
			}
		}
	}
	return found
}

var changesRows = regexp.MustCompile(`(?m)^[^-\n]*(INSERT INTO|UPDATE :|DELETE FROM)`)

// rowOfPool returns the name of the statement whose rows a pool is to return, or "" for any other node.
func rowOfPool(n ast.Node) (statement string) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != "QueryRow" && function.Sel.Name != "Query" {
		return ""
	}
	receiver, ok := function.X.(*ast.SelectorExpr)
	if !ok || receiver.Sel.Name != "pool" {
		return ""
	}
	get, ok := call.Args[1].(*ast.CallExpr)
	if !ok || len(get.Args) != 1 {
		return ""
	}
	literal, ok := get.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	return strings.Trim(literal.Value, `"`)
}

// rawPools are fields of pools that are only used as a configuration, or that are passed on to be wrapped.
var rawPools = []string{"internal/store/lease/listen.go", "cmd/edda/root.go"}

func unnamedLevel(path string, n ast.Node) string {
	switch n := n.(type) {
	case *ast.StructType:
		for _, field := range n.Fields.List {
			pointer, ok := field.Type.(*ast.StarExpr)
			if ok && isSelector(pointer.X, "pgxpool", "Pool") && !slices.Contains(rawPools, path) {
				return "a field of type *pgxpool.Pool: make it a *pg.Pool, whose transactions are READ COMMITTED"
			}
		}
	case *ast.CompositeLit:
		level := func(e ast.Expr) bool {
			pair, ok := e.(*ast.KeyValueExpr)
			return ok && fmt.Sprint(pair.Key) == "IsoLevel"
		}
		if isSelector(n.Type, "pgx", "TxOptions") && !slices.ContainsFunc(n.Elts, level) {
			return "pgx.TxOptions without a level: take pg.ReadCommitted"
		}
	case *ast.CallExpr:
		function, ok := n.Fun.(*ast.SelectorExpr)
		if ok && function.Sel.Name == "Begin" && strings.HasSuffix(strings.ToLower(fmt.Sprint(function.X)), "conn") {
			return "Begin on a connection: use BeginTx with pg.ReadCommitted, or pg.Conn"
		}
	}
	return ""
}

func isSelector(e ast.Expr, pack, name string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	return ok && fmt.Sprint(selector.X) == pack && selector.Sel.Name == name
}
