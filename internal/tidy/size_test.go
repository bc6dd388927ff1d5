package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"testing"
)

// Lengths in lines. Beyond the goals a line in the verbose log tells so; beyond the limits the test fails.
const (
	fileGoal  = 400
	fileLimit = 500
	funcGoal  = 70
	funcLimit = 90
)

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, src := range sources(t) {
		findings, remarks := checkSizes(src)
		report(t, findings)
		for _, r := range remarks {
			t.Log(r)
		}
	}
}

// checkSizes measures a file and its functions; tests may be longer, since tables of cases are.
func checkSizes(src source) (findings, remarks []string) {
	if src.isTest() || src.generated() {
		return nil, nil
	}
	lines := bytes.Count(src.text, []byte("\n"))
	switch {
	case lines > fileLimit:
		findings = append(findings, fmt.Sprintf("%s:1: %d lines, the limit is %d: one concept to a file, so move one out",
			src.path, lines, fileLimit))
	case lines > fileGoal:
		remarks = append(remarks, fmt.Sprintf("%s:1: %d lines, the goal is %d", src.path, lines, fileGoal))
	}
	for _, decl := range src.file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		length := src.line(fn.End()) - src.line(fn.Pos()) + 1
		switch {
		case length > funcLimit:
			findings = append(findings, src.at(fn.Pos(), "%s has %d lines, the limit is %d: name a part of it and move it out",
				fn.Name.Name, length, funcLimit))
		case length > funcGoal:
			remarks = append(remarks, src.at(fn.Pos(), "%s has %d lines, the goal is %d", fn.Name.Name, length, funcGoal))
		}
	}
	return findings, remarks
}
