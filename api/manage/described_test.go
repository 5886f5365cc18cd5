package manage_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"gopkg.in/yaml.v3"
)

// description is openapi.yaml, as far as requests and answers are held against it.
type description struct {
	Paths      map[string]map[string]yaml.Node `yaml:"paths"`
	Components map[string]map[string]any       `yaml:"components"`

	operations map[string]map[string]operation // by path and method
	closed     any                             // the schemas of the components
	mu         sync.Mutex
	schemas    map[string]*jsonschema.Resolved
}

type operation struct {
	Parameters []part            `yaml:"parameters"`
	Security   *[]map[string]any `yaml:"security"`
	Body       part              `yaml:"requestBody"`
	Responses  map[string]part   `yaml:"responses"`
}

// part is a parameter, a body or an answer, or a reference to one.
type part struct {
	Ref     string           `yaml:"$ref"`
	Name    string           `yaml:"name"`
	In      string           `yaml:"in"`
	Content map[string]media `yaml:"content"`
}

type media struct {
	Schema yaml.Node `yaml:"schema"`
}

// theDescription is read once for all tests.
var theDescription = sync.OnceValues(func() (*description, error) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	d := &description{operations: map[string]map[string]operation{}, schemas: map[string]*jsonschema.Resolved{}}
	if err := yaml.Unmarshal(text, d); err != nil {
		return nil, err
	}
	d.closed = strict(d.Components["schemas"])
	for path, nodes := range d.Paths {
		var shared []part
		if node, has := nodes["parameters"]; has {
			if err := node.Decode(&shared); err != nil {
				return nil, err
			}
			delete(nodes, "parameters")
		}
		d.operations[path] = map[string]operation{}
		for method, node := range nodes {
			var one operation
			if err := node.Decode(&one); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			one.Parameters = append(one.Parameters, shared...)
			d.operations[path][strings.ToUpper(method)] = one
		}
	}
	return d, nil
})

// described holds a request that was sent, and its answer, against openapi.yaml: the
// credentials and parameters that were taken, the status, and both bodies, in which
// nothing may stand that is not described.
func described(t *testing.T, request *http.Request, sent []byte, answer reply) {
	t.Helper()
	d, err := theDescription()
	if err != nil {
		t.Fatal(err)
	}
	one, known := d.find(request.Method, strings.TrimPrefix(request.URL.EscapedPath(), prefix))
	if !known {
		return // TestEveryRouteIsDescribedAndNoOther compares routes
	}
	fault := func(format string, values ...any) {
		t.Helper()
		t.Errorf("openapi.yaml: %s, status %d: %s", answer.request, answer.status, fmt.Sprintf(format, values...))
	}
	responded, has := one.Responses[strconv.Itoa(answer.status)]
	if !has && answer.status >= http.StatusBadRequest {
		responded, has = one.Responses["default"]
	}
	if !has {
		fault("no such status")
		return
	}
	if err := d.conforms(responded, answer.header.Get("Content-Type"), answer.body); err != nil {
		fault("answer: %v in %.500s", err, answer.body)
	}
	byKey := request.Header.Get("Authorization") != "" || request.Header.Get("X-Api-Key") != ""
	if answer.status >= http.StatusBadRequest {
		if byKey && one.Security == nil && answer.status == http.StatusForbidden && bytes.Contains(answer.body, []byte("API key")) && bytes.Contains(answer.body, []byte("Log in")) {
			fault("an API key is not taken: %s", answer.body)
		}
		return
	}
	if security := one.Security; security != nil && len(*security) > 0 && byKey {
		fault("an API key is not among what is taken")
	} else if (security == nil || len(*security) > 0) && !byKey && len(request.Cookies()) == 0 {
		fault("no credentials were needed")
	}
	for name := range request.URL.Query() {
		if !slices.ContainsFunc(one.Parameters, func(p part) bool { p = d.part(p); return p.In == "query" && p.Name == name }) {
			fault("parameter %s", name)
		}
	}
	if len(sent) > 0 {
		if err := d.conforms(one.Body, request.Header.Get("Content-Type"), sent); err != nil {
			fault("request: %v in %.500s", err, sent)
		}
	}
}

// find returns the operation of a request.
func (d *description) find(method, path string) (operation, bool) {
	steps := strings.Split(path, "/")
	best, found := -1, operation{}
	for template, operations := range d.operations {
		one, has := operations[method]
		named := strings.Split(template, "/")
		if !has || len(named) != len(steps) {
			continue
		}
		same := 0
		for i := range named {
			if named[i] == steps[i] {
				same++
			} else if !strings.HasPrefix(named[i], "{") {
				same = -len(named)
			}
		}
		if same > best {
			best, found = same, one
		}
	}
	return found, best >= 0
}

// part follows a reference.
func (d *description) part(p part) part {
	if p.Ref == "" {
		return p
	}
	steps := strings.Split(p.Ref, "/")
	var found part
	if text, err := yaml.Marshal(d.Components[steps[2]][steps[3]]); err != nil || yaml.Unmarshal(text, &found) != nil {
		return part{}
	}
	return found
}

// conforms returns how a body of a type is not as a part says.
func (d *description) conforms(p part, contentType string, body []byte) error {
	p = d.part(p)
	if len(body) == 0 && len(p.Content) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return err
	}
	media, has := p.Content[kind]
	if !has {
		return fmt.Errorf("there is no %s", kind)
	}
	if media.Schema.IsZero() || !strings.HasSuffix(kind, "json") {
		return nil
	}
	schema, err := d.schema(media.Schema)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return schema.Validate(value)
}

// schema returns a schema in which what is not described is a fault.
func (d *description) schema(node yaml.Node) (*jsonschema.Resolved, error) {
	var tree any
	if err := node.Decode(&tree); err != nil {
		return nil, err
	}
	tree = strict(tree)
	own, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, has := d.schemas[string(own)]; has {
		return known, nil
	}
	text, err := json.Marshal(map[string]any{"allOf": []any{tree}, "$defs": d.closed}) // all definitions: far larger
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte("#/components/schemas/"), []byte("#/$defs/"))
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, err
	}
	d.schemas[string(own)] = resolved
	return resolved, nil
}

// strict closes the objects of a schema whose members are described, but for what is a
// part of another.
func strict(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		closed := map[string]any{}
		for name, value := range tree {
			if name == "Limits" || name == "allOf" {
				closed[name] = value
				continue
			}
			closed[name] = strict(value)
		}
		_, isOpen := tree["additionalProperties"]
		if members, is := tree["properties"].(map[string]any); is && !isOpen && tree["type"] != nil && len(members) > 0 {
			closed["unevaluatedProperties"] = false
		}
		return closed
	case []any:
		closed := make([]any, len(tree))
		for i := range tree {
			closed[i] = strict(tree[i])
		}
		return closed
	}
	return tree
}

// sentBody returns what a request has sent.
func sentBody(t *testing.T, request *http.Request) []byte {
	t.Helper()
	if request.GetBody == nil {
		return nil
	}
	copied, err := request.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(copied)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
