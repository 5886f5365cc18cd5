package manage_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"palimpsest/api/manage"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
)

var update = flag.Bool("update", false, "write the schema of settings into openapi.yaml")

func TestOpenAPIDescribesEverySetting(t *testing.T) {
	t.Parallel()
	writtenFrom(t, "    ", "TestOpenAPIDescribesEverySetting", "the modules", settingsSchema())
}

// writtenFrom fails the test where openapi.yaml has another text than want between the lines that say what it is
// written from. With -update it writes want there.
func writtenFrom(t *testing.T, indent, test, source, want string) {
	t.Helper()
	writtenBetween(t, "openapi.yaml", fmt.Sprintf("%s# Written by go test ./api/manage -run %s -update, from %s.\n", indent, test, source), fmt.Sprintf("%s# End of what is written from %s.\n", indent, source), want)
}

// written keeps two tests from writing a file at once.
var written sync.Mutex

// writtenBetween is writtenFrom for what stands between two texts of a file.
func writtenBetween(t *testing.T, file, begin, end, want string) {
	t.Helper()
	written.Lock()
	defer written.Unlock()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	got, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no place for what is written between %q and %q", file, begin, end)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s has another text after %q: run this test with -update", file, begin)
	}
}

func TestOpenAPIDescribesEverySum(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		source, indent string
		sums           []sums.Sum
	}{
		{"session.Sums", strings.Repeat(" ", 8), sums.Of[session.Sums]()},
		{"tenants.Usage", strings.Repeat(" ", 14), sums.Of[tenants.Usage]()},
	} {
		var want strings.Builder
		for _, sum := range of.sums {
			if sum.JSON != "-" {
				fmt.Fprintf(&want, "%s%s: {type: integer, description: %q}\n", of.indent, sum.JSON, sum.Help)
			}
		}
		writtenFrom(t, of.indent, "TestOpenAPIDescribesEverySum", of.source, want.String())
	}
}

// The figures and flags of a request are described where they are declared.
func TestOpenAPIDescribesEveryFigureOfARequest(t *testing.T) {
	t.Parallel()
	types := map[reflect.Kind]string{reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number", reflect.Bool: "boolean"}
	var want strings.Builder
	for _, field := range reflect.VisibleFields(manage.RequestType) {
		if kind, is := types[field.Type.Kind()]; is {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fmt.Fprintf(&want, "        %s: {type: %s, description: %q}\n", name, kind, field.Tag.Get("doc"))
		}
	}
	writtenFrom(t, "        ", "TestOpenAPIDescribesEveryFigureOfARequest", "requestJSON", want.String())
}

// settingsSchema returns the schema of a config.
func settingsSchema() string {
	var out strings.Builder
	fmt.Fprintf(&out, "    PipelineSettings:\n      type: object\n      description: Every setting by the names of the pipeline config\n      properties:\n")
	fmt.Fprintf(&out, "        modules: {type: array, items: {type: string, enum: [%s]}, description: \"These run, in this order\"}\n", strings.Join(modules.Catalog().Names(), ", "))
	for _, module := range modules.Catalog().Modules() {
		fmt.Fprintf(&out, "        %s:\n          type: object\n          description: %s\n          properties:\n", module.Name, strconv.Quote(module.Does))
		for _, card := range module.Cards {
			for i := range card.Settings {
				fmt.Fprintf(&out, "            %s: %s\n", card.Settings[i].Name, schemaOf(&card.Settings[i]))
			}
		}
	}
	return out.String()
}

// schemaOf returns the schema of a setting in one line.
func schemaOf(s *pipeline.Setting) string {
	says := strconv.Quote(s.Label)
	if s.Reserved != "" {
		says = strconv.Quote("Has no effect. " + s.Reserved)
	}
	return "{" + typeOf(s) + ", description: " + says + "}"
}

func typeOf(s *pipeline.Setting) string {
	switch s.Kind {
	case pipeline.Number:
		kind := "integer"
		if strings.Contains(s.Step, ".") {
			kind = "number"
		}
		return fmt.Sprintf("type: %s, minimum: %s, maximum: %s", kind, s.Low, s.High)
	case pipeline.Toggle:
		if len(s.Members) == 0 {
			return "type: boolean"
		}
		members := make([]string, len(s.Members))
		for i := range s.Members {
			members[i] = s.Members[i].Name + ": " + schemaOf(&s.Members[i])
		}
		return "type: [boolean, object], properties: {" + strings.Join(members, ", ") + "}"
	case pipeline.Choice:
		values := make([]string, len(s.Options))
		for i, option := range s.Options {
			values[i] = option.Value
		}
		return "enum: [" + strings.Join(values, ", ") + "]"
	case pipeline.TokenWindow:
		return "type: [string, integer]"
	case pipeline.Numbers:
		return "type: array, items: {type: integer}"
	case pipeline.Lines:
		return "type: array, items: {type: string}"
	default:
		return "type: string"
	}
}
