package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is what the import path of each of our packages begins with.
const module = "palimpsest/"

// sourceFile is one Go file of the tree.
type sourceFile struct {
	Path      string // from the root, with slashes
	Folder    string // the package's folder; "." is the root
	Test      bool   // its name ends in _test.go
	Generated bool   // written by a program
	Text      []byte
	Files     *token.FileSet
	Syntax    *ast.File
}

// tree is every Go file of the product's folders, read once.
var tree = sync.OnceValues(readTree)

// sources returns every Go file of the product's folders. They are shared by all
// tests and not to be changed.
func sources(t *testing.T) []sourceFile {
	t.Helper()

	found, err := tree()
	if err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	if len(found) < 20 {
		t.Fatalf("read %d Go files: the test does not run at the root of the module", len(found))
	}

	return found
}

func readTree() ([]sourceFile, error) {
	var found []sourceFile
	err := fs.WalkDir(repository, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if file != "." && (isForeign(entry.Name()) || isModule(file)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		source, err := readSource(file)
		if err != nil {
			return err
		}
		found = append(found, source)
		return nil
	})

	return found, err
}

// isModule reports whether a folder is a module of its own, such as a tool of the tests.
func isModule(folder string) bool {
	_, err := fs.Stat(repository, filepath.Join(folder, "go.mod"))
	return err == nil
}

// isForeign reports whether a folder of this name holds no source of the product.
func isForeign(name string) bool {
	return name == "testdata" || name == "bin" || name == "data" || name == "node_modules" ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func readSource(file string) (sourceFile, error) {
	text, err := fs.ReadFile(repository, file)
	if err != nil {
		return sourceFile{}, err
	}
	files := token.NewFileSet()
	syntax, err := parser.ParseFile(files, file, text, parser.ParseComments)
	if err != nil {
		return sourceFile{}, err
	}

	name := filepath.ToSlash(file)
	return sourceFile{
		Path:      name,
		Folder:    path.Dir(name),
		Test:      strings.HasSuffix(name, "_test.go"),
		Generated: ast.IsGenerated(syntax),
		Text:      text,
		Files:     files,
		Syntax:    syntax,
	}, nil
}

// imports returns the import paths of a file.
func (s sourceFile) imports() []string {
	paths := make([]string, 0, len(s.Syntax.Imports))
	for _, spec := range s.Syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			target = spec.Path.Value
		}
		paths = append(paths, target)
	}

	return paths
}

// types returns the types that a file declares outside its functions.
func (s sourceFile) types() []*ast.TypeSpec {
	var types []*ast.TypeSpec
	for _, declaration := range s.Syntax.Decls {
		group, is := declaration.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, spec := range group.Specs {
			if declared, is := spec.(*ast.TypeSpec); is {
				types = append(types, declared)
			}
		}
	}

	return types
}

// at names a place in the file the way compilers do.
func (s sourceFile) at(node ast.Node) string {
	place := s.Files.Position(node.Pos())

	return s.Path + ":" + strconv.Itoa(place.Line)
}
