package modules_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/tokens"
)

func TestListedModulesAreThoseThatRun(t *testing.T) {
	t.Parallel()

	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	made := modules.All(counter, modules.Memory{})
	for i, described := range modules.Catalog().Modules() {
		if made[i].Name() != described.Name {
			t.Errorf("module %d is %s and describes %s", i, made[i].Name(), described.Name)
		}
		if settings := described.Defaults(); settings.ModuleName() != described.Name {
			t.Errorf("the settings of %s are those of %s", described.Name, settings.ModuleName())
		}
	}
}

func TestDefaultsAreAllowed(t *testing.T) {
	t.Parallel()

	if err := modules.Catalog().Validate(modules.Catalog().Default()); err != nil {
		t.Error(err)
	}
}

func TestEverySettingIsNamedForPeople(t *testing.T) {
	t.Parallel()

	for _, module := range modules.Catalog().Modules() {
		if module.Title == "" || module.Does == "" || module.Docs == "" {
			t.Errorf("%s has no title, sentence or page: %+v", module.Name, module)
		}
		for _, card := range module.Cards {
			for _, setting := range card.Settings {
				for _, s := range append([]pipeline.Setting{setting}, setting.Members...) {
					if s.Kind == "" || s.Label == "" || s.Kind == pipeline.Number && (s.Low == "" || s.High == "" || s.Step == "") {
						t.Errorf("%s.%s: %+v", module.Name, s.Name, s)
					}
				}
			}
		}
	}
}

var update = flag.Bool("update", false, "write the page of settings")

// docs/settings.md is made from what the modules say of themselves: go test -update writes it.
func TestPageOfSettingsIsThatOfTheModules(t *testing.T) {
	t.Parallel()

	const file = "../../docs/settings.md"
	want := page()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/settings.md is not what the modules say: go test ./pipeline/modules -update writes it")
	}
}

// page returns the page of settings.
func page() string {
	var out strings.Builder
	out.WriteString(`# Settings of the pipeline

Every setting of every module, with its default and what it may be. The dashboard has most of them on
the page Compression, the API at ` + "`/api/v1/pipeline`" + `. A workspace's settings are YAML:

` + "```yaml" + `
modules: [ipc, rehydrator]   # these run, in this order; none for no module
ipc:
  targetUtilization: 0.6     # what is left out has its default
` + "```" + `

An API key may have settings of its own, which win over those of its workspace, and the headers
of a request win over both.
`)
	config := modules.Catalog().Default()
	for _, module := range modules.Catalog().Modules() {
		runs := "It does not run unless it is named."
		if config.Runs(module.Name) {
			runs = "It runs by default."
		}
		fmt.Fprintf(&out, "\n## %s\n\n%s %s [More](%s).\n\n| setting | default | allowed | meaning |\n| --- | --- | --- | --- |\n", module.Name, module.Does, runs, module.Docs)
		for _, card := range module.Cards {
			for i := range card.Settings {
				s := &card.Settings[i]
				out.WriteString(row(s.Name, "`"+modules.Catalog().Written(config, module.Name+"."+s.Name)+"`", s))
				for j := range s.Members {
					out.WriteString(row(s.Name+"."+s.Members[j].Name, "", &s.Members[j]))
				}
			}
		}
	}
	return out.String()
}

func row(name, standard string, s *pipeline.Setting) string {
	meaning := s.Label + ". "
	if s.Hint != "" {
		first, size := utf8.DecodeRuneInString(s.Hint)
		meaning += string(unicode.ToUpper(first)) + s.Hint[size:]
	}
	if s.IsRare {
		meaning = strings.TrimSpace(meaning) + " Not on the page Compression."
	}
	if s.Reserved != "" {
		meaning = "Has no effect. " + s.Reserved
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, standard, s.Allowed(), strings.TrimSpace(meaning))
}
