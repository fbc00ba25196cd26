package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
)

// A mutant is a file in which the bytes from:to are others.
type mutant struct {
	file, kind string
	source     []byte
	from, to   int
	with       string
	line, col  int // of what a test must execute to see the change, from 1
}

func (m *mutant) apply() []byte {
	return slices.Concat(m.source[:m.from], []byte(m.with), m.source[m.to:])
}

// String says what the mutant changes, in one line.
func (m *mutant) String() string {
	brief := func(s string) string {
		s = strings.Join(strings.Fields(s), " ")
		return s[:min(len(s), 70)]
	}
	return fmt.Sprintf("%s: %s -> %s", m.kind, brief(string(m.source[m.from:m.to])), brief(m.with))
}

// operators are what each is replaced by.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	// Where + joins strings, - does not compile, and the mutant does not count.
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*", token.AND: "|", token.OR: "&",
	token.XOR: "&", token.SHL: ">>", token.SHR: "<<", token.INC: "--", token.DEC: "++",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
}

// mutantsOf returns all mutants of the functions of a file.
func mutantsOf(name string) (all []mutant, err error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(kind string, from, to token.Pos, with string) {
		at := files.Position(from)
		all = append(all, mutant{name, kind, source, at.Offset, files.Position(to).Offset, with, at.Line, at.Column})
	}
	text := func(n ast.Node) string {
		return string(source[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset])
	}
	replace := func(at token.Pos, was token.Token) {
		kind := "arithmetic"
		switch was {
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			kind = "boundary"
		case token.EQL, token.NEQ:
			kind = "negated condition"
		}
		if with, ok := operators[was]; ok {
			add(kind, at, at+token.Pos(len(was.String())), with)
		}
	}
	condition := func(cond ast.Expr) {
		b, ok := cond.(*ast.BinaryExpr)
		if cond != nil && !(ok && (b.Op == token.EQL || b.Op == token.NEQ)) { // these are negated where they stand
			add("negated condition", cond.Pos(), cond.End(), "!("+text(cond)+")")
		}
	}
	var visit func(of *ast.FuncType, body ast.Node)
	visit = func(of *ast.FuncType, body ast.Node) {
		fails := false // the function returns an error last
		if r := of.Results; r != nil && len(r.List) > 0 {
			last, ok := r.List[len(r.List)-1].Type.(*ast.Ident)
			fails = ok && last.Name == "error"
		}
		ast.Inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				// Its own results decide what a return in it swallows.
				visit(n.Type, n.Body)
				return false
			case *ast.IfStmt:
				condition(n.Cond)
				add("if forced false", n.Cond.Pos(), n.Cond.End(), "false && ("+text(n.Cond)+")")
			case *ast.ForStmt:
				condition(n.Cond)
			case *ast.BinaryExpr:
				replace(n.OpPos, n.Op)
				if n.Op == token.LAND || n.Op == token.LOR {
					add("one side of && or ||", n.Pos(), n.End(), text(n.X))
					add("one side of && or ||", n.Pos(), n.End(), text(n.Y))
				}
			case *ast.IncDecStmt:
				replace(n.TokPos, n.Tok)
				add("removed statement", n.Pos(), n.End(), "")
			case *ast.AssignStmt:
				replace(n.TokPos, n.Tok)
				if n.Tok != token.DEFINE { // without a definition nothing compiles
					add("removed statement", n.Pos(), n.End(), "")
				}
			case *ast.ExprStmt:
				add("removed statement", n.Pos(), n.End(), "")
			case *ast.ReturnStmt:
				if fails && len(n.Results) > 0 && text(n.Results[len(n.Results)-1]) != "nil" {
					add("swallowed error", n.Results[len(n.Results)-1].Pos(), n.End(), "nil")
				}
			case *ast.Ident:
				if n.Name == "true" || n.Name == "false" {
					add("inverted bool", n.Pos(), n.End(), "!"+n.Name)
				}
			case *ast.UnaryExpr:
				if n.Op == token.NOT {
					add("inverted bool", n.Pos(), n.End(), text(n.X))
				}
			}
			return true
		})
	}
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
			visit(fn.Type, fn.Body)
			placeCases(all, files, fn)
		}
	}
	return all, nil
}

// placeCases gives mutants of the conditions of cases the place of their switch: coverage has no block for the
// conditions, which the switch executes.
func placeCases(all []mutant, files *token.FileSet, fn *ast.FuncDecl) {
	ast.Inspect(fn, func(n ast.Node) bool {
		s, ok := n.(*ast.SwitchStmt)
		if !ok {
			return true
		}
		at := files.Position(s.Pos())
		for _, c := range s.Body.List {
			for _, cond := range c.(*ast.CaseClause).List {
				from, to := files.Position(cond.Pos()).Offset, files.Position(cond.End()).Offset
				for i, m := range all {
					if m.from >= from && m.to <= to {
						all[i].line, all[i].col = at.Line, at.Column
					}
				}
			}
		}
		return true
	})
}
