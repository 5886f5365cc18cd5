package policy_test

import (
	"go/ast"
	"testing"
)

// maxMethods bounds the methods of one type. It only gets smaller.
const maxMethods = 30

func TestNoTypeHasMoreMethodsThanAllowed(t *testing.T) {
	t.Parallel()

	methods := map[string]int{} // by folder and type
	for _, source := range sources(t) {
		if source.Generated || source.Test {
			continue
		}
		for _, declaration := range source.Syntax.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				if name := receiverName(declaration); name != "" {
					methods[source.Folder+"."+name]++
				}
			case *ast.GenDecl:
				for name, count := range interfaces(declaration) {
					methods[source.Folder+"."+name] += count
				}
			}
		}
	}

	for name, count := range methods {
		if count > maxMethods {
			t.Errorf("%s has %d methods, more than %d: split it along its nouns", name, count, maxMethods)
		}
	}
}

// receiverName returns the type that a method belongs to; "" for a function.
func receiverName(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	name := rootName(function.Recv.List[0].Type)
	if name == nil {
		return ""
	}

	return name.Name
}

// interfaces returns how many methods each interface of a declaration names itself.
func interfaces(group *ast.GenDecl) map[string]int {
	found := map[string]int{}
	for _, spec := range group.Specs {
		declared, is := spec.(*ast.TypeSpec)
		if !is {
			continue
		}
		if face, is := declared.Type.(*ast.InterfaceType); is {
			for _, method := range face.Methods.List {
				found[declared.Name.Name] += len(method.Names)
			}
		}
	}

	return found
}
