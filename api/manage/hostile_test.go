package manage_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// bodiesOf returns bodies for an operation: the valid one, and hostile ones that are made
// from what openapi.yaml says of its members.
func bodiesOf(t *testing.T, one operation, valid string) []string {
	t.Helper()
	d, err := theDescription()
	if err != nil {
		t.Fatal(err)
	}
	body := d.part(one.Body)
	media, has := body.Content["application/json"]
	if !has {
		return []string{valid, `{"unknown":1}`}
	}
	var tree any
	if err := media.Schema.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	start := map[string]any{}
	if valid != "" {
		if err := json.Unmarshal([]byte(valid), &start); err != nil {
			t.Fatalf("%s: %v", valid, err)
		}
	}
	bodies := []string{valid, "", "[]", "null", `""`, "{", `{"unknown":1}`, valid + valid}
	members := d.members(tree)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		for _, value := range d.hostile(members[name]) {
			changed := maps.Clone(start)
			changed[name] = value
			text := asJSON(t, changed)
			bodies = append(bodies, text)
			if given, has := start[name]; has { // once as it is allowed, and then as it is not
				repeated := fmt.Sprintf(`{%q:%s,%q:%s,`, name, asJSON(t, given), strings.ToUpper(name), asJSON(t, value))
				bodies = append(bodies, repeated+strings.TrimPrefix(text, "{"))
			}
		}
	}
	return bodies
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// follow returns what a schema refers to.
func (d *description) follow(tree any) map[string]any {
	schema, _ := tree.(map[string]any)
	if reference, is := schema["$ref"].(string); is {
		steps := strings.Split(reference, "/")
		return d.follow(d.Components[steps[2]][steps[3]])
	}
	return schema
}

// members returns the schemas of all members that an object may have.
func (d *description) members(tree any) map[string]any {
	schema, found := d.follow(tree), map[string]any{}
	for _, combined := range []string{"allOf", "oneOf", "anyOf"} {
		parts, _ := schema[combined].([]any)
		for _, part := range parts {
			maps.Copy(found, d.members(part))
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	maps.Copy(found, properties)
	return found
}

// hostile returns values for a member that look like what is allowed, or like more.
func (d *description) hostile(tree any) []any {
	schema := d.follow(tree)
	var words []any
	collect := func(from map[string]any) {
		values, _ := from["enum"].([]any)
		for _, value := range values {
			words = append(words, value, fmt.Sprintf(" %v", value), fmt.Sprintf("%v,", value), strings.ToUpper(fmt.Sprint(value)))
		}
	}
	collect(schema)
	if items, has := schema["items"]; has {
		collect(d.follow(items))
		lists := []any{[]any{}, []any{nil}, []any{""}, []any{"a,b"}, []any{[]any{"a"}}, []any{"0.0.0.0/0"}, []any{uuid.Nil.String()}, words}
		for _, word := range words {
			lists = append(lists, []any{word}, []any{fmt.Sprintf("proxy,%v", word)})
		}
		return append(lists, "a", nil)
	}
	if schema["type"] == "object" {
		return []any{nil, []any{}, "x", map[string]any{"unknown": 1}}
	}
	if len(words) > 0 {
		return append(words, "", nil, []any{words[0]})
	}
	return []any{nil, "", " ", "a,b\n", "\u0000", -1, 1e30, true, []any{"x"}, "2999-01-01T00:00:00Z", uuid.Nil.String(), "<script>"}
}
