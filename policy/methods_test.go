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
			if function, is := declaration.(*ast.FuncDecl); is && receiverName(function) != "" {
				methods[source.Folder+"."+receiverName(function)]++
			}
		}
		for name, own := range interfacesOf(source) {
			methods[source.Folder+"."+name] += len(own)
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
