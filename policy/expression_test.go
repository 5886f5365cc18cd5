package policy_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// A regular expression that is compiled when it is first used must not fail then.
func TestLateRegularExpressionsAreValid(t *testing.T) {
	t.Parallel()

	constants := map[string]map[string]ast.Expr{}
	for _, source := range sources(t) {
		if constants[source.Folder] == nil {
			constants[source.Folder] = map[string]ast.Expr{}
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			if one, is := node.(*ast.ValueSpec); is && len(one.Names) == len(one.Values) {
				for i, name := range one.Names {
					constants[source.Folder][name.Name] = one.Values[i]
				}
			}
			return true
		})
	}
	checked, unknown := 0, 0
	for _, source := range sources(t) {
		if source.Test {
			continue
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			call, is := node.(*ast.CallExpr)
			if !is || !isExpression(call.Fun) {
				return true
			}
			text, known := textOf(call.Args[0], constants[source.Folder])
			if !known {
				unknown++
				return true
			}
			checked++
			if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", source.Files.Position(call.Pos()), err)
			}
			return true
		})
	}
	if checked < 50 || unknown > 2 {
		t.Errorf("%d expressions are checked, and %d are not written as constants", checked, unknown)
	}
}

// isExpression reports whether a function is expression.New.
func isExpression(function ast.Expr) bool {
	selector, is := function.(*ast.SelectorExpr)
	if !is || selector.Sel.Name != "New" {
		return false
	}
	of, is := selector.X.(*ast.Ident)
	return is && of.Name == "expression"
}

// textOf returns a text that is written as literals and names of constants.
func textOf(expression ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch one := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(one.Value)
		return text, err == nil
	case *ast.Ident:
		value, is := constants[one.Name]
		if !is {
			return "", false
		}
		return textOf(value, constants)
	case *ast.BinaryExpr:
		left, known := textOf(one.X, constants)
		right, alsoKnown := textOf(one.Y, constants)
		return left + right, known && alsoKnown && one.Op == token.ADD
	}
	return "", false
}
