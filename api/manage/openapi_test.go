package manage_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

func TestEveryRouteIsDescribedAndNoOther(t *testing.T) {
	t.Parallel()
	w := &tenant{product: setup(t)}
	answer := w.sendWith(t, "", http.MethodGet, "/openapi.yaml", "")
	answer.want(t, http.StatusOK)
	var document struct {
		OpenAPI string                          `yaml:"openapi"`
		Paths   map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(answer.body, &document); err != nil {
		t.Fatal(err)
	}
	var described []string
	for path, operations := range document.Paths {
		for method := range operations {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(described)
	registered := routes(w.echo)
	for i := range registered {
		registered[i] = regexp.MustCompile(`:(\w+)`).ReplaceAllString(registered[i], "{$1}")
	}
	slices.Sort(registered)
	if !slices.Equal(described, registered) || len(registered) < 20 {
		t.Errorf("described are\n%s\nregistered are\n%s", strings.Join(described, "\n"), strings.Join(registered, "\n"))
	}
}

func TestEveryReferenceInTheDescriptionLeadsSomewhere(t *testing.T) {
	t.Parallel()
	w := &tenant{product: setup(t)}
	answer := w.sendWith(t, "", http.MethodGet, "/openapi.yaml", "")
	var document map[string]any
	if err := yaml.Unmarshal(answer.body, &document); err != nil {
		t.Fatal(err)
	}
	references := regexp.MustCompile(`\$ref: "#/([^"]+)"`).FindAllStringSubmatch(string(answer.body), -1)
	if len(references) < 50 {
		t.Fatalf("found %d references", len(references))
	}
	for _, reference := range references {
		var at any = document
		for step := range strings.SplitSeq(reference[1], "/") {
			members, is := at.(map[string]any)
			if !is {
				at = nil
				break
			}
			at = members[step]
		}
		if at == nil {
			t.Errorf("nothing is at #/%s", reference[1])
		}
	}
}
