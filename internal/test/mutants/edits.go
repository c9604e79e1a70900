package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// edit is a small change of one file. A random mutant makes one.
type edit struct {
	p        *goPackage
	op       string
	file     string
	function string // the function, the variable or the SQL statement that changes
	from, to int    // offsets in the file
	now      string
	at       int  // the offset of the code whose tests reach the edit
	declared bool // function is a constant or a variable of the package: tests that reach its uses reach the edit
}

// walker collects the edits of one file of Go.
type walker struct {
	p        *goPackage
	s        *source
	function string
	declared bool      // function is a constant or a variable
	at       token.Pos // the code that decides whether the visited expression runs, if it is elsewhere
	edits    []edit
}

// silent are methods that only describe a value.
var silent = map[string]bool{"String": true, "GoString": true, "LogValue": true}

// goEdits returns all edits of a file of Go:
//
//	negate    a condition is negated
//	drop      a statement is left out
//	timer     a timer is not reset, or not stopped
//	error     an error is ignored, or not returned
//	shift     a comparison or a bound of a slice is off by one
//	constant  a truth value is the other one, a number is larger by one, a number above 99 twice as large, a time a
//	          hundred times as long
//	swap      two arguments of one type are in the other order
func goEdits(p *goPackage, s *source) []edit {
	if ast.IsGenerated(s.tree) {
		return nil
	}
	w := &walker{p: p, s: s}
	for _, decl := range s.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body != nil && !silent[d.Name.Name] {
				w.function, w.declared = functionName(d), false
				ast.Inspect(d.Body, w.visit)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					w.function, w.declared = v.Names[0].Name, true
					ast.Inspect(v, w.visit)
				}
			}
		}
	}
	return w.edits
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")
	of, _, _ = strings.Cut(of, "[")
	return of + "." + d.Name.Name
}

func (w *walker) add(op string, from, to token.Pos, now string) {
	at := from
	if w.at.IsValid() {
		at = w.at
	}
	w.edits = append(w.edits, edit{p: w.p, op: op, file: w.s.name, function: w.function, from: w.s.at(from),
		to: w.s.at(to), now: now, at: w.s.at(at), declared: w.declared})
}

func (w *walker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		declared := w.declared
		w.declared = false
		ast.Inspect(n.Body, w.visit)
		w.declared = declared
		return false
	case *ast.ArrayType:
		return false
	case *ast.CallExpr:
		if w.quiet(n) || w.builtin(n.Fun, "make") {
			return false
		}
		w.swap(n)
	case *ast.BlockStmt:
		w.drop(n.List)
	case *ast.SwitchStmt:
		w.cases(n)
	case *ast.CaseClause: // its expressions are visited with the statement
		w.drop(n.Body)
		for _, s := range n.Body {
			ast.Inspect(s, w.visit)
		}
		return false
	case *ast.CommClause:
		w.drop(n.Body)
	case *ast.IfStmt:
		w.negate(n.Cond)
		w.ignore(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			w.negate(n.Cond)
		}
	case *ast.AssignStmt:
		w.negateAll(n.Rhs)
	case *ast.ReturnStmt:
		w.negateAll(n.Results)
		w.succeed(n)
	case *ast.BinaryExpr:
		w.shift(n)
	case *ast.SliceExpr:
		w.shiftBound(n.Low, "+1")
		w.shiftBound(n.High, "-1")
	case *ast.BasicLit:
		w.number(n)
	case *ast.Ident:
		if now := map[string]string{"true": "false", "false": "true"}[n.Name]; now != "" && w.builtin(n, n.Name) {
			w.add("constant", n.Pos(), n.End(), now)
		}
	}
	return true
}

// builtin reports whether e is the predeclared name.
func (w *walker) builtin(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && w.p.info.Uses[id] == types.Universe.Lookup(name)
}

// quiet reports whether a call only writes a log, makes an error or panics.
func (w *walker) quiet(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return w.builtin(call.Fun, "panic")
	}
	f := w.p.info.Uses[sel.Sel]
	if f == nil || f.Pkg() == nil {
		return false
	}
	full := f.Pkg().Path() + "." + f.Name()
	return strings.HasPrefix(full, "log") || full == "fmt.Errorf" || full == "errors.New"
}

// cases visits the expressions of a switch: the code before the switch decides whether they run.
func (w *walker) cases(n *ast.SwitchStmt) {
	w.at = n.Pos()
	for _, clause := range n.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			if n.Tag == nil {
				w.negate(e)
			}
			ast.Inspect(e, w.visit)
		}
	}
	w.at = token.NoPos
}

func (w *walker) negate(e ast.Expr) {
	e = ast.Unparen(e)
	if w.p.info.Types[e].Value != nil {
		return
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			w.negate(e.X)
			w.negate(e.Y)
			return
		}
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			w.add("negate", e.Pos(), e.X.Pos(), "")
			return
		}
	}
	w.add("negate", e.Pos(), e.End(), "!("+w.s.of(e)+")")
}

// negateAll negates the expressions that are conditions.
func (w *walker) negateAll(all []ast.Expr) {
	for _, e := range all {
		if t, ok := w.p.info.Types[e]; ok && isBasic(t.Type, types.IsBoolean) {
			w.negate(e)
		}
	}
}

func isBasic(t types.Type, kind types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&kind != 0
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// ignore makes a condition pass over an error.
func (w *walker) ignore(e ast.Expr) {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	switch {
	case !ok:
	case b.Op == token.LAND || b.Op == token.LOR:
		w.ignore(b.X)
		w.ignore(b.Y)
	case b.Op == token.NEQ && w.p.info.Types[b.Y].IsNil() && isError(w.p.info.TypeOf(b.X)):
		w.add("error", b.Pos(), b.End(), "("+w.s.of(b)+" && false)")
	}
}

// succeed returns nil in place of an error.
func (w *walker) succeed(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	if t := w.p.info.Types[last]; !t.IsNil() && isError(t.Type) {
		w.add("error", last.Pos(), last.End(), "func(error) error { return nil }("+w.s.of(last)+")")
	}
}

func isDuration(t types.Type) bool { return types.TypeString(t, nil) == "time.Duration" }

func (w *walker) shift(e *ast.BinaryExpr) {
	now := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}[e.Op]
	if t := w.p.info.TypeOf(e.X); now != "" && isBasic(t, types.IsInteger) && !isDuration(t) {
		w.add("shift", e.OpPos, e.OpPos+token.Pos(len(e.Op.String())), now)
	}
}

func (w *walker) shiftBound(e ast.Expr, by string) {
	if e != nil && w.p.info.Types[e].Value == nil {
		w.add("shift", e.Pos(), e.End(), "("+w.s.of(e)+")"+by)
	}
}

// number changes a decimal integer.
func (w *walker) number(n *ast.BasicLit) {
	value, err := strconv.Atoi(n.Value)
	if n.Kind != token.INT || err != nil || len(n.Value) > 1 && n.Value[0] == '0' {
		return
	}
	now := value + 1
	switch {
	case isDuration(w.p.info.TypeOf(n)):
		now = value * 100
	case value > 99:
		now = value * 2
	}
	if now != value {
		w.add("constant", n.Pos(), n.End(), strconv.Itoa(now))
	}
}

// symmetric are functions that do the same with their arguments in the other order.
var symmetric = map[string]bool{"Equal": true, "EqualFold": true, "EqualFunc": true}

func (w *walker) swap(call *ast.CallExpr) {
	signature, ok := w.p.info.TypeOf(call.Fun).(*types.Signature)
	if !ok || w.p.info.Types[call.Fun].IsBuiltin() {
		return
	}
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && symmetric[sel.Sel.Name] {
		return
	}
	parameters := signature.Params()
	single := parameters.Len()
	if signature.Variadic() {
		single--
	}
	for n := range min(single, len(call.Args)) - 1 {
		a, b := call.Args[n], call.Args[n+1]
		if w.s.of(a) != w.s.of(b) && types.Identical(parameters.At(n).Type(), parameters.At(n+1).Type()) {
			between := w.s.text[w.s.at(a.End()):w.s.at(b.Pos())]
			w.add("swap", a.Pos(), b.End(), w.s.of(b)+between+w.s.of(a))
		}
	}
}

// timer reports whether a call resets or stops a timer.
func (w *walker) timer(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f, ok := w.p.info.Uses[sel.Sel].(*types.Func)
	return ok && f.Pkg() != nil && f.Pkg().Path() == "time" && (f.Name() == "Reset" || f.Name() == "Stop")
}

// drop leaves statements out. A timer that is stopped at the end of a function costs only memory.
func (w *walker) drop(list []ast.Stmt) {
	for _, s := range list {
		op := "drop"
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if ok && w.quiet(call) {
				continue
			}
			if ok && w.timer(call) {
				op = "timer"
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.DeferStmt:
			if w.timer(s.Call) {
				continue
			}
		case *ast.ReturnStmt:
			if len(s.Results) > 0 {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.BranchStmt:
		default:
			continue
		}
		w.add(op, s.Pos(), s.End(), "")
	}
}

func (e edit) String() string { return fmt.Sprintf("%s in %s of %s", e.op, e.function, e.file) }
