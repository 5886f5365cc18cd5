package render_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// notFiles are the languages whose rules are more than a file can say: programs, or two languages in one.
var notFiles = []string{"Common Lisp", "EmacsLisp", "ERB", "Go HTML Template", "HTTP", "Haxe", "PHTML", "Raku", "Svelte", "YAML+Jinja"}

// The archive holds every other language of the version of chroma that is built in.
func TestLanguagesAreThoseOfChroma(t *testing.T) {
	t.Parallel()
	const file = "languages.zip"
	if *update {
		if err := os.WriteFile(file, archived(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if archive.Comment != chromaVersion(t) {
		t.Errorf("%s is of chroma %s, and %s is built in: run this test with -update", file, archive.Comment, chromaVersion(t))
	}
	var got, want []string
	for _, one := range archive.File {
		lexer, err := chroma.NewXMLLexer(archive, one.Name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, describe(lexer.Config()))
	}
	for _, lexer := range lexers.GlobalLexerRegistry.Lexers {
		if !slices.Contains(notFiles, lexer.Config().Name) {
			want = append(want, describe(lexer.Config()))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds\n%v\nand chroma has\n%v\nrun this test with -update", file, got, want)
	}
}

func describe(config *chroma.Config) string {
	return fmt.Sprint(config.Name, config.Aliases, config.Filenames, config.Priority)
}

func chromaVersion(t *testing.T) string {
	t.Helper()
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`alecthomas/chroma/v2 (v\S+)`).FindSubmatch(module)
	if found == nil {
		t.Fatal("go.mod has no chroma")
	}
	return string(found[1])
}

// archived returns the archive as it is to be.
func archived(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	if err := archive.SetComment(chromaVersion(t)); err != nil {
		t.Fatal(err)
	}
	for _, lexer := range lexers.GlobalLexerRegistry.Lexers {
		if slices.Contains(notFiles, lexer.Config().Name) {
			continue
		}
		text, err := chroma.Marshal(written(t, lexer))
		if err != nil {
			t.Fatalf("%s: %v", lexer.Config().Name, err)
		}
		name := strings.ReplaceAll(lexer.Config().Name, "/", "-") + ".xml"
		file, err := archive.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// written returns a lexer whose rules a file can say: a rule that a program reads becomes a string.
func written(t *testing.T, lexer chroma.Lexer) *chroma.RegexLexer {
	t.Helper()
	rules, is := lexer.(*chroma.RegexLexer)
	if !is { // Markdown, whose head may be YAML
		rules, is = reflect.TypeAssert[*chroma.RegexLexer](reflect.ValueOf(lexer).Elem().FieldByName("Lexer"))
	}
	if !is {
		t.Fatalf("%s is not made of rules", lexer.Config().Name)
	}
	kept := rules.MustRules().Clone()
	for _, state := range kept {
		for i, rule := range state {
			if rule.Type != nil {
				if _, err := xml.Marshal(rule); err != nil {
					state[i].Type = chroma.LiteralString
				}
			}
		}
	}
	return chroma.MustNewLexer(rules.Config(), func() chroma.Rules { return kept })
}
