package ledger

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every member of every object is found, with its value as it was sent.
func TestMembersAreThoseOfTheObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Custom(func(t *rapid.T) any {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
			case 1:
				return []any{"a,b", `"}\`, rapid.String().Draw(t, "element"), nil, true}
			case 2:
				return map[string]any{"nested": `}]"`, rapid.String().Draw(t, "name"): false}
			default:
				return rapid.String().Draw(t, "text")
			}
		})
		object := rapid.MapOfN(rapid.StringMatching(`[a-z_]{1,8}`), value, 0, 6).Draw(t, "object")
		var encoded []byte
		var err error
		if rapid.Bool().Draw(t, "indented") {
			encoded, err = json.MarshalIndent(object, "", "\t")
		} else {
			encoded, err = json.Marshal(object)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]json.RawMessage{}
		if err := json.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		for name, value := range members(string(encoded)) {
			got[name] = json.RawMessage(value)
		}
		if !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Fatalf("%s\ngot  %q\nwant %q", encoded, got, want)
		}
		for name, value := range object {
			if said, is := value.(string); is && decoded(string(got[name])) != said {
				t.Fatalf("%s: %q, want %q", name, decoded(string(got[name])), said)
			}
		}
	})
}

// Invalid JSON ends the reading, and nothing else.
func TestBrokenObjectsEndTheReading(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		"":                     "",
		"[1]":                  "",
		"{":                    "",
		`{"a"`:                 "",
		`{"a":`:                "a=",
		`{"a":"b`:              `a="b`,
		`{"a":1,`:              "a=1",
		`{"a":1 "b":2}`:        `a=1 "b":2`,
		`{"a":{"b":[1,{}]}} x`: `a={"b":[1,{}]}`,
		`{a:1}`:                "",
	} {
		var got []string
		for name, value := range members(object) {
			got = append(got, name+"="+value)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
}

func TestListsOfTextsAndOfObjectsAreDecoded(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"a"`:                                 "a",
		`["a","b\n"]`:                         "a|b\n",
		`[{"path":"a","x":1},{"path":"b"}]`:   "a|b",
		`[{"file":"a"},3,null,"c"]`:           "c",
		`3`:                                   "",
		``:                                    "",
		`[`:                                   "",
		`"bad \x"`:                            "",
		`[{"path":"first","uri":"not me"}]`:   "first",
		`[{"file_path":"a"},{"uri":"b://c"}]`: "a|b://c",
	} {
		if got := strings.Join(decodedList(value, "path", "file_path", "uri"), "|"); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
