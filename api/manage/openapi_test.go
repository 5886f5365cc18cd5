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

// A route that refuses parameters it does not know takes those that are described, and no
// other that any route has.
func TestEveryParameterIsDescribedAndNoOther(t *testing.T) {
	t.Parallel()
	d, err := theDescription()
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t).tenant(t, "ant")
	query := func(one operation) (names []string) {
		for _, parameter := range one.Parameters {
			if parameter = d.part(parameter); parameter.In == "query" {
				names = append(names, parameter.Name)
			}
		}
		return names
	}
	all := map[string]bool{}
	for _, operations := range d.operations {
		for _, name := range query(operations[http.MethodGet]) {
			all[name] = true
		}
	}
	for route, try := range reaches() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodGet || try.public || try.runs {
			continue
		}
		if try.path != nil {
			path = try.path(w)
		}
		path, given, _ := strings.Cut(path, "?")
		one, _ := d.find(method, path)
		var unknown []string
		for name := range all {
			request := w.build(t, method, path+"?"+given+"&"+name+"=x", "")
			request.AddCookie(w.cookie)
			var problem struct{ Field, Detail string }
			if answer := exchange(t, request); answer.status >= http.StatusBadRequest {
				answer.decode(t, &problem)
			}
			if problem.Field == name && strings.Contains(problem.Detail, "is unknown; known are") {
				unknown = append(unknown, name)
			}
		}
		for name := range all {
			isUnknown, isDescribed := slices.Contains(unknown, name), slices.Contains(query(one), name)
			if isUnknown == isDescribed && (isUnknown || len(unknown) > 0) {
				t.Errorf("%s: the parameter %s is unknown: %v, described: %v", route, name, isUnknown, isDescribed)
			}
		}
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
