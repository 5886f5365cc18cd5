package policy_test

import (
	"go/ast"
	"testing"
)

func TestRowsAreReadThroughBatchdb(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if source.Test || source.Folder == "tenants/tenantsdb" {
			continue
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			if selector, is := node.(*ast.SelectorExpr); is && selector.Sel.Name == "QueryContext" {
				t.Errorf("%s: read rows with batchdb.Rows or batchdb.Each, which send the query with what waits", source.at(selector))
			}
			return true
		})
	}
}
