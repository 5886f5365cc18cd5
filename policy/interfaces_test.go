package policy_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// What an interface costs a reader is that the same noun is described twice. These bounds only
// get lower.
const (
	maxInterfaces    = 90
	maxRepeatedNames = 60
)

// An interface is declared once, beside its noun, for everyone who uses it. Programs for tests
// do not count.
func TestEachNounsInterfaceIsDeclaredOnce(t *testing.T) {
	t.Parallel()

	interfaces, declared := 0, map[string][]string{}
	for _, source := range sources(t) {
		if source.Test || isTestSupport(source.Folder) {
			continue
		}
		for _, methods := range interfacesOf(source) {
			interfaces++
			for _, method := range methods {
				declared[method.Name] = append(declared[method.Name], source.at(method))
			}
		}
	}

	var repeated []string
	for name, places := range declared {
		for _, place := range places[1:] {
			repeated = append(repeated, name+" "+place)
		}
	}
	if interfaces > maxInterfaces {
		t.Errorf("%d interfaces, want at most %d: use one that exists, or the type that implements it", interfaces, maxInterfaces)
	}
	if len(repeated) > maxRepeatedNames {
		slices.Sort(repeated)
		t.Errorf("%d repeated method names, want at most %d:\n%s", len(repeated), maxRepeatedNames, strings.Join(repeated, "\n"))
	}
	t.Logf("%d interfaces, %d repeated method names", interfaces, len(repeated))
}

// interfacesOf returns the methods of each interface that a file declares, by its name. Those of an
// embedded interface belong to it alone.
func interfacesOf(source sourceFile) map[string][]*ast.Ident {
	found := map[string][]*ast.Ident{}
	for _, declared := range source.types() {
		face, is := declared.Type.(*ast.InterfaceType)
		if !is || isConstraint(face) {
			continue
		}
		found[declared.Name.Name] = nil
		for _, method := range face.Methods.List {
			found[declared.Name.Name] = append(found[declared.Name.Name], method.Names...)
		}
	}

	return found
}

// isConstraint reports whether an interface lists the types that a type parameter may be.
func isConstraint(face *ast.InterfaceType) bool {
	return slices.ContainsFunc(face.Methods.List, func(element *ast.Field) bool {
		_, union := element.Type.(*ast.BinaryExpr)
		return union
	})
}
