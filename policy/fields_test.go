package policy_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// maxFields bounds the fields of an exported struct that other packages name; the goal is 15.
const maxFields = 15

// moreFields bounds the structs that still have more than maxFields. It only gets shorter, and its
// numbers smaller.
func moreFields() map[string]int {
	return map[string]int{
		// The settings of a module: one list, as its YAML and its card in the dashboard show them.
		"pipeline/modules/ipc.Config": 19,
	}
}

func TestNoStructThatOthersNameHasMoreFieldsThanAllowed(t *testing.T) {
	t.Parallel()

	fields, named := map[string]int{}, map[string]bool{} // by folder and type
	for _, source := range sources(t) {
		if source.Test || isTestSupport(source.Folder) {
			continue
		}
		if !source.Generated {
			for name, count := range fieldsOf(source) {
				fields[source.Folder+"."+name] = count
			}
		}
		for name := range namedElsewhere(source) {
			named[name] = true
		}
	}

	more := moreFields()
	for name, count := range fields {
		if most := max(maxFields, more[name]); named[name] && count > most {
			t.Errorf("%s has %d fields, more than %d: split it along its nouns", name, count, most)
		}
	}
	for name, most := range more {
		if !named[name] || fields[name] < most {
			t.Errorf("%s has %d fields by now: lower its bound of %d", name, fields[name], most)
		}
	}
}

// fieldsOf returns how many fields each exported struct of a file has. An embedded one counts once.
func fieldsOf(source sourceFile) map[string]int {
	found := map[string]int{}
	for _, declared := range source.types() {
		if structure, is := declared.Type.(*ast.StructType); is && declared.Name.IsExported() {
			found[declared.Name.Name] = structure.Fields.NumFields()
		}
	}

	return found
}

// namedElsewhere returns the folders and names of our own other packages that a file names.
func namedElsewhere(source sourceFile) map[string]bool {
	folders := map[string]string{} // by the name under which a package is imported
	for _, spec := range source.Syntax.Imports {
		folder, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
		if !ours {
			continue
		}
		name := path.Base(folder)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		folders[name] = folder
	}

	found := map[string]bool{}
	ast.Inspect(source.Syntax, func(node ast.Node) bool {
		selector, is := node.(*ast.SelectorExpr)
		if !is {
			return true
		}
		if of, is := selector.X.(*ast.Ident); is && folders[of.Name] != "" {
			found[folders[of.Name]+"."+selector.Sel.Name] = true
		}
		return true
	})

	return found
}
