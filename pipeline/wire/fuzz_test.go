package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"palimpsest/pipeline/wire"
)

// FuzzOpenCutsAsEncodingJSONDoes holds the scanner to what encoding/json finds in
// any valid body, and Seal to writing valid JSON with the elements it was given.
func FuzzOpenCutsAsEncodingJSONDoes(f *testing.F) {
	for _, body := range []string{
		odd, `{"messages":[]}`, `{"m\u0065ssages":[1 ,"a\\",{"x":"\\\""},[ ] ]}`,
		`{"messages":"text","a":-0.1e+7}`, `{"messages":[[{}],{"a":[{"b":[]}]}],"messages":[true,false,null]}`,
	} {
		f.Add([]byte(body), uint8(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, body []byte, from, to uint8) {
		envelope, err := wire.Open(body, "messages")
		if !json.Valid(body) {
			return // it did not panic
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(body, &object) != nil || object == nil {
			return
		}
		var want []json.RawMessage
		list := object["messages"]
		if json.Unmarshal(list, &want) != nil || want == nil {
			return // no list, or a string
		}
		if err != nil {
			t.Fatalf("%v in %q", err, body)
		}
		checkElements(t, envelope, want)
		for name, value := range object {
			got, ok := envelope.Member(name)
			if isPlain(name) && (!ok || !bytes.Equal(got, value)) {
				t.Fatalf("member %q: %q, want %q", name, got, value)
			}
		}
		checkSeal(t, envelope, want, min(int(from), len(want)), int(to))
	})
}

func checkElements(t *testing.T, envelope *wire.Envelope, want []json.RawMessage) {
	t.Helper()
	if envelope.Len() != len(want) {
		t.Fatalf("%d elements, want %d in %q", envelope.Len(), len(want), envelope.Body())
	}
	for i := range want {
		if !bytes.Equal(envelope.Element(i), want[i]) {
			t.Fatalf("element %d: %q, want %q", i, envelope.Element(i), want[i])
		}
	}
}

// checkSeal replaces the elements from one place to another and sets a member.
func checkSeal(t *testing.T, envelope *wire.Envelope, want []json.RawMessage, from, to int) {
	t.Helper()
	to = max(from, min(to, len(want)))
	same := envelope.Seal([]wire.Piece{{From: 0, To: from}, {From: from, To: len(want)}})
	if !bytes.Equal(same, envelope.Body()) {
		t.Fatalf("unchanged, but %q", same)
	}
	sealed := envelope.Seal([]wire.Piece{
		{From: 0, To: from}, {From: from, To: to, Raw: json.RawMessage(`"new"`)}, {From: to, To: len(want)},
	}, wire.Member{Name: "added", Raw: json.RawMessage("7")})
	if !json.Valid(sealed) {
		t.Fatalf("sealed %q", sealed)
	}
	again, err := wire.Open(sealed, "messages")
	if err != nil {
		t.Fatalf("sealed: %v in %q", err, sealed)
	}
	expected := append(append(append([]json.RawMessage{}, want[:from]...), json.RawMessage(`"new"`)), want[to:]...)
	checkElements(t, again, expected)
	if added, ok := again.Member("added"); !ok || string(added) != "7" {
		t.Fatalf("added member is %q in %q", added, sealed)
	}
}

// isPlain reports whether a name is spelled in one way only: encoding/json maps
// broken UTF-8 and case variants in ways of its own.
func isPlain(name string) bool {
	for _, c := range name {
		if c == 0xfffd {
			return false
		}
	}
	return true
}

func FuzzStringsAreReadAsEncodingJSONDoes(f *testing.F) {
	for _, text := range []string{`"a\n\u00e9\ud83d\ude00"`, `"\ud83d"`, `"\udc00\ud83dx"`, "\"\xff\"", `"\/\b\f\r\t\"\\"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want string
		got, ok := wire.String(raw)
		if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &want) != nil || raw[len(raw)-1] != '"' {
			return
		}
		if !ok || got != want {
			t.Fatalf("%q: %q, want %q", raw, got, want)
		}
		var back string
		quoted := wire.Quote(got)
		if err := json.Unmarshal(quoted, &back); err != nil || back != want {
			t.Fatalf("%q was quoted as %s: %v", got, quoted, err)
		}
	})
}

// FuzzObjects changes objects and holds them to encoding/json.
func FuzzObjects(f *testing.F) {
	f.Add([]byte(`{ "a" : 1, "b":[ 2 ] , "a":{"c":null}}`), "a")
	f.Add([]byte(`{}`), "new\"")
	f.Add([]byte(`[1,{"a":2}]`), "a")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		var object map[string]json.RawMessage
		isObject := json.Unmarshal(raw, &object) == nil && object != nil
		set, deleted := wire.Set(raw, name, json.RawMessage("[7]")), wire.Delete(raw, name)
		if !isObject || !isPlain(name) {
			return
		}
		if got := wire.Get(set, name); !json.Valid(set) || string(got) != "[7]" {
			t.Fatalf("set %q in %q: %q", name, raw, set)
		}
		if got := wire.Get(deleted, name); !json.Valid(deleted) || got != nil {
			t.Fatalf("delete %q in %q: %q", name, raw, deleted)
		}
	})
}
