package policy_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// maxWidth bounds the fields of such a struct with those of the structs that it embeds, at every depth.
const maxWidth = 25

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

// A reader can't tell which fields of a wider struct are set when.
func TestNoStructThatOthersNameIsWiderThanAllowed(t *testing.T) {
	t.Parallel()

	structs, in, named := map[string]*ast.StructType{}, map[string]sourceFile{}, map[string]bool{} // by folder and type
	for _, source := range sources(t) {
		if source.Test || source.Generated || isTestSupport(source.Folder) {
			continue
		}
		for _, declared := range source.types() {
			if structure, is := declared.Type.(*ast.StructType); is {
				name := source.Folder + "." + declared.Name.Name
				structs[name], in[name] = structure, source
			}
		}
		for name := range namedElsewhere(source) {
			named[name] = true
		}
	}

	var width func(name string) int
	width = func(name string) int {
		structure, known := structs[name]
		if !known {
			return 1
		}
		fields := 0
		for _, field := range structure.Fields.List {
			if len(field.Names) == 0 {
				fields += width(embedded(field.Type, in[name]))
			}
			fields += len(field.Names)
		}
		return fields
	}
	for name := range structs {
		if count := width(name); named[name] && count > maxWidth {
			t.Errorf("%s has %d fields with those of embedded structs, more than %d: give each reader the fields that it reads", name, count, maxWidth)
		}
	}
}

// embedded returns the folder and name of an embedded type; "" if it is not one of our own.
func embedded(of ast.Expr, source sourceFile) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return embedded(of.X, source)
	case *ast.IndexExpr:
		return embedded(of.X, source)
	case *ast.Ident:
		return source.Folder + "." + of.Name
	case *ast.SelectorExpr:
		if from, is := of.X.(*ast.Ident); is && ourImports(source)[from.Name] != "" {
			return ourImports(source)[from.Name] + "." + of.Sel.Name
		}
	}
	return ""
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

// ourImports returns the folders of our own packages that a file imports, by their names in the file.
func ourImports(source sourceFile) map[string]string {
	folders := map[string]string{}
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

	return folders
}

// namedElsewhere returns the folders and names of our own other packages that a file names.
func namedElsewhere(source sourceFile) map[string]bool {
	folders, found := ourImports(source), map[string]bool{}
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
