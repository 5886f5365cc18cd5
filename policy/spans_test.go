package policy_test

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// Every span and attribute that the code names is on the page about monitoring.
func TestMonitoringPageListsTheSpansAndTheirAttributes(t *testing.T) {
	t.Parallel()

	_, rest, _ := strings.Cut(readFile(t, "docs/monitoring.md"), "\n## Traces\n")
	page, _, _ := strings.Cut(rest, "\n## ")
	count := 0
	want := func(source sourceFile, name string) {
		count++
		if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, "`"+name+" ") {
			t.Errorf("%s names %q, and docs/monitoring.md does not", source.Path, name)
		}
	}
	for _, source := range sources(t) {
		if source.Test {
			continue
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			call, is := node.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			name, isLiteral := call.Args[min(1, len(call.Args)-1)].(*ast.BasicLit)
			if !isLiteral || name.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(name.Value)
			if err != nil {
				t.Fatal(err)
			}
			switch function := call.Fun.(type) {
			case *ast.SelectorExpr:
				if of, isName := function.X.(*ast.Ident); isName && of.Name == "spans" && strings.HasPrefix(function.Sel.Name, "Start") {
					want(source, text)
				}
			case *ast.Ident:
				if source.Path == "pipeline/spans/key.go" && function.Name == "Key" {
					want(source, text)
				}
			}
			return true
		})
	}
	if count < 50 {
		t.Errorf("only %d names were found", count)
	}
}
