package policy_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines     = 500
	maxFunctionLines = 80
	maxFiles         = 25
)

func TestNoFileAndNoFunctionIsTooLong(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if source.Generated {
			continue
		}
		if lines := bytes.Count(source.Text, []byte("\n")); lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d", source.Path, lines, maxFileLines)
		}
		if source.Test {
			continue
		}
		for _, declaration := range source.Syntax.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if !is {
				continue
			}
			lines := source.Files.Position(function.End()).Line - source.Files.Position(function.Pos()).Line + 1
			if lines > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d", source.at(function), function.Name.Name, lines, maxFunctionLines)
			}
		}
	}
}

// Generated files and tests don't count, because a package may have a test file for each behavior.
func TestNoPackageHasTooManyFiles(t *testing.T) {
	t.Parallel()

	files := map[string]int{}
	for _, source := range sources(t) {
		if !source.Test && !source.Generated {
			files[source.Folder]++
		}
	}
	for folder, count := range files {
		if count > maxFiles {
			t.Errorf("%s has %d files, more than %d: move a noun to a package of its own", folder, count, maxFiles)
		}
	}
}

// The pages that benchmarks write may be as long as their tables.
func TestNoPageOfTheDocsIsTooLong(t *testing.T) {
	t.Parallel()
	pages, err := fs.Glob(repository, "docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages %v, %v", pages, err)
	}
	for _, page := range pages {
		text := readFile(t, page)
		if lines := strings.Count(text, "\n"); lines > maxFileLines && !strings.Contains(text, "writes from here -->") {
			t.Errorf("%s has %d lines, more than %d", page, lines, maxFileLines)
		}
	}
}

func TestEveryPackageHasOneDocComment(t *testing.T) {
	t.Parallel()

	documented := map[string]int{}
	for _, source := range sources(t) {
		if source.Test {
			continue
		}
		documented[source.Folder] += 0
		if source.Syntax.Doc != nil && !source.Generated {
			documented[source.Folder]++
		}
	}

	for folder, comments := range documented {
		if comments != 1 {
			t.Errorf("the package in %s has %d doc comments, want 1", folder, comments)
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if source.Test || source.Generated {
			continue
		}
		for _, declaration := range source.Syntax.Decls {
			for _, name := range undocumented(declaration) {
				t.Errorf("%s: %s has no doc comment that begins with its name", source.at(name), name.Name)
			}
		}
	}
}

// undocumented returns the exported names that a declaration leaves without a
// comment. The names of a documented group share its comment.
func undocumented(declaration ast.Decl) []*ast.Ident {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if exportedFunction(declaration) && !startsWith(declaration.Doc, declaration.Name.Name) {
			return []*ast.Ident{declaration.Name}
		}
	case *ast.GenDecl:
		var missing []*ast.Ident
		for _, spec := range declaration.Specs {
			missing = append(missing, undocumentedSpec(declaration, spec)...)
		}
		return missing
	}

	return nil
}

func undocumentedSpec(group *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		doc := spec.Doc
		if doc == nil {
			doc = group.Doc
		}
		if spec.Name.IsExported() && !startsWith(doc, spec.Name.Name) {
			return []*ast.Ident{spec.Name}
		}
	case *ast.ValueSpec:
		if group.Doc != nil || spec.Doc != nil || spec.Comment != nil {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(spec.Names), func(name *ast.Ident) bool { return !name.IsExported() })
	}

	return nil
}

// exportedFunction reports whether other packages can call a function: a method
// counts if its type is exported too.
func exportedFunction(function *ast.FuncDecl) bool {
	if !function.Name.IsExported() {
		return false
	}
	if function.Recv == nil {
		return true
	}
	receiver := function.Recv.List[0].Type
	if pointer, is := receiver.(*ast.StarExpr); is {
		receiver = pointer.X
	}
	if generic, is := receiver.(*ast.IndexExpr); is {
		receiver = generic.X
	}
	name, is := receiver.(*ast.Ident)

	return is && name.IsExported()
}

func startsWith(doc *ast.CommentGroup, name string) bool {
	if doc == nil {
		return false
	}
	text := doc.Text()
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}

	return strings.HasPrefix(text, name)
}

func TestNoTestSleeps(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if !source.Test {
			continue
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			if selector, is := node.(*ast.SelectorExpr); is && isName(selector.X, "time") && selector.Sel.Name == "Sleep" {
				t.Errorf("%s: a test waits for a signal, it does not sleep", source.at(selector))
			}
			return true
		})
	}
}

func TestNoPackageHasInitFunctions(t *testing.T) {
	t.Parallel()

	for _, source := range sources(t) {
		if source.Generated {
			continue
		}
		for _, declaration := range source.Syntax.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if is && function.Recv == nil && function.Name.Name == "init" {
				t.Errorf("%s: func init runs for everybody who imports the package", source.at(function))
			}
		}
	}
}

func TestNoPackageVariableIsWrittenTo(t *testing.T) {
	t.Parallel()

	variables := map[string]map[string]bool{} // by folder
	for _, source := range sources(t) {
		for _, declaration := range source.Syntax.Decls {
			group, is := declaration.(*ast.GenDecl)
			if !is || group.Tok != token.VAR || source.Test || source.Generated {
				continue
			}
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if variables[source.Folder] == nil {
						variables[source.Folder] = map[string]bool{}
					}
					variables[source.Folder][name.Name] = name.Name != "_"
				}
			}
		}
	}

	for _, source := range sources(t) {
		if source.Test || source.Generated {
			continue
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			for _, written := range writtenTo(node) {
				if name := rootName(written); name != nil && source.isPackageLevel(name) && variables[source.Folder][name.Name] {
					t.Errorf("%s: %s is shared by the whole package and written to", source.at(node), name.Name)
				}
			}
			return true
		})
	}
}

// writtenTo returns what a statement assigns to, or hands out the address of.
func writtenTo(node ast.Node) []ast.Expr {
	switch node := node.(type) {
	case *ast.AssignStmt:
		if node.Tok != token.DEFINE {
			return node.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{node.X}
	case *ast.UnaryExpr:
		if node.Op == token.AND {
			return []ast.Expr{node.X}
		}
	}

	return nil
}

// rootName returns x of x.y[z].
func rootName(expression ast.Expr) *ast.Ident {
	for {
		switch inner := expression.(type) {
		case *ast.Ident:
			return inner
		case *ast.SelectorExpr:
			expression = inner.X
		case *ast.IndexExpr:
			expression = inner.X
		case *ast.StarExpr:
			expression = inner.X
		case *ast.ParenExpr:
			expression = inner.X
		default:
			return nil
		}
	}
}

// isPackageLevel reports whether a name is not one of the function it stands in.
func (s sourceFile) isPackageLevel(name *ast.Ident) bool {
	// One file at a time is all that is known here: what the parser resolves is enough.
	if name.Obj == nil {
		return true // declared in another file of the package
	}

	return s.Syntax.Scope.Lookup(name.Name) == name.Obj
}

func TestOnlyTheCommandReadsTheEnvironment(t *testing.T) {
	t.Parallel()

	readers := []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}
	for _, source := range sources(t) {
		if source.Test || isTestSupport(source.Folder) || within(source.Folder, "cmd") {
			continue
		}
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			if selector, is := node.(*ast.SelectorExpr); is && isName(selector.X, "os") && slices.Contains(readers, selector.Sel.Name) {
				t.Errorf("%s: os.%s outside cmd", source.at(selector), selector.Sel.Name)
			}
			return true
		})
	}
}

func isName(expression ast.Expr, name string) bool {
	identifier, is := expression.(*ast.Ident)

	return is && identifier.Name == name
}

func TestEveryOpenPointNamesItsIssue(t *testing.T) {
	t.Parallel()

	open := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b(\(#\d+\): )?`)
	for _, source := range sources(t) {
		for _, group := range source.Syntax.Comments {
			for _, point := range open.FindAllStringSubmatch(group.Text(), -1) {
				if point[1] != "TODO" || point[2] == "" {
					t.Errorf("%s: write TODO(#12): … or nothing", source.at(group))
				}
			}
		}
	}
}

func TestNoFileNamesAPlaceOutsideTheRepository(t *testing.T) {
	t.Parallel()

	// Split, so that this file does not name them either.
	outside := []string{"/wo" + "rk/", "/home" + "/", "/Use" + "rs/", "/ro" + "ot/"}
	shared := "../sha" + "red"
	for _, source := range sources(t) {
		ast.Inspect(source.Syntax, func(node ast.Node) bool {
			literal, is := node.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			if strings.Contains(literal.Value, shared) && !source.Test && !isTestSupport(source.Folder) {
				t.Errorf("%s: only tests may read %s", source.at(literal), shared)
			}
			for _, place := range outside {
				if strings.HasPrefix(strings.Trim(literal.Value, "\"`"), place) && !source.Test {
					t.Errorf("%s: %s names a place on one machine", source.at(literal), literal.Value)
				}
			}
			return true
		})
	}
}
