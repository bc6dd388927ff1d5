package tidy

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

func TestCodeKeepsTheHouseRules(t *testing.T) {
	for _, src := range sources(t) {
		report(t, checkHouseRules(src))
	}
}

// checkHouseRules finds what no package of ours does: write to standard output from a library, use package log, run code
// at import, sleep instead of waiting for what it waits for, throw an error away without saying why.
func checkHouseRules(src source) []string {
	var findings []string
	found := func(p token.Pos, format string, args ...any) {
		findings = append(findings, src.at(p, format, args...))
	}
	src.selects("time", func(sel *ast.SelectorExpr) {
		if sel.Sel.Name == "Sleep" {
			found(sel.Pos(), "time.Sleep: wait for the event itself, with a deadline (channel, condition, ticker)")
		}
	})
	if src.imported("log") != "" {
		found(src.file.Pos(), "imports log: use log/slog")
	}
	if src.isTest() {
		return findings
	}
	checkPrints(src, found)
	checkInits(src, found)
	checkBlanks(src, found)
	return findings
}

func checkPrints(src source, found func(token.Pos, string, ...any)) {
	if src.file.Name.Name == "main" || strings.HasPrefix(src.path, "cmd/") || strings.HasPrefix(src.path, "bench/") {
		return
	}
	src.selects("fmt", func(sel *ast.SelectorExpr) {
		if strings.HasPrefix(sel.Sel.Name, "Print") {
			found(sel.Pos(), "fmt.%s in a library: take an io.Writer or a *slog.Logger", sel.Sel.Name)
		}
	})
	src.selects("os", func(sel *ast.SelectorExpr) {
		if sel.Sel.Name == "Exit" {
			found(sel.Pos(), "os.Exit in a library: return an error")
		}
	})
	ast.Inspect(src.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "println" || id.Name == "print") {
				found(call.Pos(), "%s is for debugging: remove it", id.Name)
			}
		}
		return true
	})
}

func checkInits(src source, found func(token.Pos, string, ...any)) {
	for _, decl := range src.file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found(fn.Pos(), "func init: run nothing at import; let the caller call it")
		}
	}
}

// checkBlanks wants a reason beside every `_ = f()`.
func checkBlanks(src source, found func(token.Pos, string, ...any)) {
	ast.Inspect(src.file, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || assign.Tok != token.ASSIGN || !allBlank(assign.Lhs) {
			return true
		}
		if src.remark(assign.Pos()) == "" {
			found(assign.Pos(), "a result is thrown away: handle it, or say why not in a comment on this line or above it")
		}
		return true
	})
}

func allBlank(exprs []ast.Expr) bool {
	for _, e := range exprs {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}
