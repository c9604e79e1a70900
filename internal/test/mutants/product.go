package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// product is the code that random mutants break.
type product struct {
	root     string
	files    *token.FileSet
	types    types.Config
	packages []*goPackage
	tested   []string // directories of packages with tests, except internal/test
}

// goPackage is one package of the product, checked.
type goPackage struct {
	dir, path string
	sources   []*source
	embedded  []string // SQL files
	info      *types.Info
}

// source is one file of a package.
type source struct {
	name, text string
	tree       *ast.File
}

func (s *source) at(pos token.Pos) int { return int(pos - s.tree.FileStart) }

func (s *source) of(n ast.Node) string { return s.text[s.at(n.Pos()):s.at(n.End())] }

// beside matches the directories that are not the product.
var beside = regexp.MustCompile(`^(internal/test|examples|cmd/edda/internal/scaffold/program)(/|$)`)

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Export                        string
	GoFiles, EmbedFiles, TestGoFiles, XTestGoFiles []string
	Module                                         *struct{ Main bool }
}

// loadProduct compiles the packages of the module in root, and reads and checks the packages of the product.
func loadProduct(ctx context.Context, root string) (*product, error) {
	list := exec.CommandContext(ctx, "go", "list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,EmbedFiles,TestGoFiles,XTestGoFiles,Module", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	c := &product{root: root, files: token.NewFileSet()}
	exports := map[string]string{}
	c.types.Importer = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var all []listed
	for in := json.NewDecoder(strings.NewReader(string(output))); ; {
		var l listed
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		exports[l.ImportPath] = l.Export
		if l.Module != nil && l.Module.Main {
			all = append(all, l)
		}
	}
	for _, l := range all {
		if err := c.add(l); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.packages, func(a, b *goPackage) int { return strings.Compare(a.dir, b.dir) })
	return c, nil
}

func (c *product) add(l listed) error {
	dir, err := filepath.Rel(c.root, l.Dir)
	if dir = filepath.ToSlash(dir); err != nil {
		return err
	}
	if len(l.TestGoFiles)+len(l.XTestGoFiles) > 0 && !strings.HasPrefix(dir, "internal/test/") {
		c.tested = append(c.tested, dir)
	}
	if beside.MatchString(dir) {
		return nil
	}
	p := &goPackage{dir: dir, path: l.ImportPath}
	for _, name := range l.EmbedFiles {
		if filepath.Ext(name) == ".sql" {
			p.embedded = append(p.embedded, filepath.ToSlash(filepath.Join(dir, name)))
		}
	}
	for _, name := range l.GoFiles {
		name = filepath.ToSlash(filepath.Join(dir, name))
		text, err := os.ReadFile(filepath.Join(c.root, name))
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(c.files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.sources = append(p.sources, &source{name: name, text: string(text), tree: tree})
	}
	if p.info, err = c.check(p, nil); err != nil {
		return err
	}
	c.packages = append(c.packages, p)
	return nil
}

// check checks a package, with some files replaced.
func (c *product) check(p *goPackage, replaced map[string]*ast.File) (*types.Info, error) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}}
	var trees []*ast.File
	for _, s := range p.sources {
		if tree := replaced[s.name]; tree != nil {
			trees = append(trees, tree)
			continue
		}
		trees = append(trees, s.tree)
	}
	_, err := c.types.Check(p.path, c.files, trees, info)
	return info, err
}

// compiles reports whether a package compiles with a changed text of a file.
func (c *product) compiles(p *goPackage, name, text string) bool {
	if !strings.HasSuffix(name, ".go") {
		return true
	}
	tree, err := parser.ParseFile(c.files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	_, err = c.check(p, map[string]*ast.File{name: tree})
	return err == nil
}
