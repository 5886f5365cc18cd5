package providerdouble

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// cutByJSON cuts a value as encoding/json does.
func cutByJSON[T any](raw string) (parts T, ok bool) {
	ok = json.Unmarshal([]byte(raw), &parts) == nil
	return parts, ok
}

// checkCuts compares how a valid value is cut with what encoding/json makes of it.
func checkCuts(t *testing.T, raw string) {
	t.Helper()
	same := func(a, b json.RawMessage) bool { return string(a) == string(b) }
	object, isObject := objectMembers([]byte(raw))
	if want, ok := cutByJSON[members](raw); firstByte([]byte(raw)) == '{' && (isObject != ok || !maps.EqualFunc(object, want, same)) {
		t.Errorf("%q: members %q, want %q", raw, object, want)
	}
	list, isList := elements([]byte(raw))
	if want, ok := cutByJSON[[]json.RawMessage](raw); firstByte([]byte(raw)) == '[' && (isList != ok || !slices.EqualFunc(list, want, same)) {
		t.Errorf("%q: elements %q, want %q", raw, list, want)
	}
	if first := firstByte([]byte(raw)); first != '{' && isObject || first != '[' && isList {
		t.Errorf("%q is cut although it is neither an object nor a list", raw)
	}
}

func cutExamples() []string {
	return []string{
		`{}`, `[]`, ` { } `, "[\n]", `null`, `"{}"`, `7`, `""`,
		`{"a":1,"b":[2,{"c":"}"}],"a":3}`, `{"a\\":"\\\\","b":"\\\"","\u0063":"\\\\\""}`,
		`[1,-2.5e3,true,false,null,"x,y","[",{"a":[]},[[]]]`, "[ 1 ,\t\"a\" , { \"b\" : null } ]", `{"":{"":""}}`,
	}
}

func TestValuesAreCutAsEncodingJSONCutsThem(t *testing.T) {
	t.Parallel()
	for _, raw := range cutExamples() {
		checkCuts(t, raw)
	}
	for _, raw := range []string{`{"a":1`, `{"a":1}}`, `{"a" 1}`, `{a:1}`, `[1,]`, ``} {
		if _, ok := document([]byte(raw)); ok {
			t.Errorf("%q is taken for a document", raw)
		}
	}
}

func FuzzCut(f *testing.F) {
	for _, raw := range cutExamples() {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if json.Valid([]byte(raw)) {
			checkCuts(t, raw)
		}
	})
}
