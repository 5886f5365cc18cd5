package manage_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
)

var update = flag.Bool("update", false, "write the schema of settings into openapi.yaml")

// The schema between these lines of openapi.yaml is made from what the modules say of
// themselves.
const (
	settingsBegin = "    # Written by go test ./api/manage -run TestOpenAPIDescribesEverySetting -update, from the modules.\n"
	settingsEnd   = "    # End of what is written from the modules.\n"
)

func TestOpenAPIDescribesEverySetting(t *testing.T) {
	t.Parallel()

	const file = "openapi.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := bytes.Cut(text, []byte(settingsBegin))
	got, after, ends := bytes.Cut(rest, []byte(settingsEnd))
	if !begins || !ends {
		t.Fatal("openapi.yaml has no place for the schema of settings")
	}
	want := settingsSchema()
	if *update {
		written := bytes.Join([][]byte{before, []byte(settingsBegin), []byte(want), []byte(settingsEnd), after}, nil)
		if err := os.WriteFile(file, written, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Error("openapi.yaml does not describe the settings that the modules have: run this test with -update")
	}
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
