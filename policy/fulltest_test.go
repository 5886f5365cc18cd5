package policy_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Each test that a change does not run, or runs a part of, is listed with its package.
func TestDocsListTestsThatOnlyTestAllRunsWhole(t *testing.T) {
	t.Parallel()
	calls := map[string][]string{}
	for _, source := range sources(t) {
		if !source.Test || source.Folder == "pipeline/fulltest" {
			continue
		}
		for _, declaration := range source.Syntax.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if !is {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				if name := calledOf(node, "fulltest"); name != "" {
					calls[name] = append(calls[name], "`"+function.Name.Name+"` ("+source.Folder+")")
				}
				return true
			})
		}
	}
	for name, heading := range map[string]string{"Only": "## Only in make test-all", "Part": "## A tenth on every change", "Turn": "## In turns"} {
		_, section, _ := strings.Cut(readFile(t, "docs/testing.md"), heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		listed := found(section, "(?m)^- (`\\w+` \\([\\w/]+\\))")
		slices.Sort(calls[name])
		if tests := slices.Compact(calls[name]); !slices.Equal(listed, tests) {
			t.Errorf("docs/testing.md lists under %q\n%s\nthe tests are\n- %s", heading, strings.Join(listed, "\n"), strings.Join(tests, "\n- "))
		}
	}
}

// calledOf returns the function of a package that a node calls, "" for every other node.
func calledOf(node ast.Node, pkg string) string {
	call, is := node.(*ast.CallExpr)
	if !is {
		return ""
	}
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	if name, is := selector.X.(*ast.Ident); is && name.Name == pkg {
		return selector.Sel.Name
	}
	return ""
}
