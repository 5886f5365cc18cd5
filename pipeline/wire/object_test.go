package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"
)

func TestSetReplacesTheLastMemberOfTheNameOrAddsOne(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ object, want string }{
		{`{ "a":1 , "b" : 2 }`, `{ "a":1 , "b" : 7 }`},
		{`{"b":1,"b":2,"a":0}`, `{"b":1,"b":7,"a":0}`},
		{`{ "a":1 }`, `{ "a":1,"b":7 }`},
		{`{"\u0062":{"b":1}}`, `{"\u0062":7}`},
		{`{}`, `{"b":7}`},
		{`{ }`, `{"b":7}`},
	} {
		if got := string(wire.Set(json.RawMessage(test.object), "b", json.RawMessage("7"))); got != test.want {
			t.Errorf("%s: %s, want %s", test.object, got, test.want)
		}
	}
}

func TestDeleteTakesAMemberOutWithItsComma(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ object, want string }{
		{`{ "a":1 , "b" : 2 }`, `{ "a":1 }`},
		{`{ "b":1 , "a" : 2 }`, `{ "a" : 2 }`},
		{`{"a":1, "b":2 ,"c":3}`, `{"a":1 ,"c":3}`},
		{`{"b":1,"b":2}`, `{}`},
		{`{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{}`, `{}`},
	} {
		if got := string(wire.Delete(json.RawMessage(test.object), "b")); got != test.want {
			t.Errorf("%s: %s, want %s", test.object, got, test.want)
		}
	}
}

func TestKeepTakesMembersOutWithTheirCommas(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ object, front, want string }{
		{`{ "b":1,"c" : true, "a":{"b":2} }`, "", `{ "a":{"b":2} }`},
		{`{"a":1,"b":2 ,"c":3}`, "", `{"a":1}`},
		{`{"\u0062":1}`, "", `{}`},
		{`{"a":1}`, "", `{"a":1}`},
		{` { "b":1, "a":2}`, `"f":0,`, ` {"f":0, "a":2}`},
		{`{"a":1}`, `"f":0,`, `{"f":0,"a":1}`},
		{`{"b":1 }`, `"f":0,`, `{"f":0 }`},
	} {
		got := string(wire.Keep(json.RawMessage(test.object), func(name []byte, _ json.RawMessage) bool { return string(name) == "a" }, func() []byte { return []byte(test.front) }))
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.object, got, test.want)
		}
	}
}

func TestReplaceKeepsTheBytesOfAnArrayThatDoesNotChange(t *testing.T) {
	t.Parallel()

	array := json.RawMessage(`[ 1, "a" ,{} ]`)
	same := wire.Replace(array, func(_ int, element json.RawMessage) json.RawMessage { return element })
	if &same[0] != &array[0] {
		t.Errorf("written again: %s", same)
	}
	for drop, want := range map[int]string{0: `[ "a" ,{} ]`, 1: `[ 1 ,{} ]`, 2: `[ 1, "a" ]`} {
		got := wire.Replace(array, func(i int, element json.RawMessage) json.RawMessage {
			if i == drop {
				return nil
			}
			return element
		})
		if string(got) != want {
			t.Errorf("without %d: %s, want %s", drop, got, want)
		}
	}
}

func TestBrokenValuesEndWithoutPanic(t *testing.T) {
	t.Parallel()

	for _, raw := range []string{"", "{", `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `[`, `[1`, `[1,`, `nul`, `"`, `{1:2}`} {
		for i := range wire.Elements(json.RawMessage(raw)) {
			if i > 0 {
				t.Errorf("%q: more than one element", raw)
			}
		}
		if got := wire.Get(json.RawMessage(raw), "b"); got != nil {
			t.Errorf("%q: found %s", raw, got)
		}
		wire.Set(json.RawMessage(raw), "b", json.RawMessage("1"))
		wire.Delete(json.RawMessage(raw), "a")
	}
}

// A12: valid UTF-8, no HTML escapes, the same bytes every time.
func TestQuoteWritesNoMoreEscapesThanNeeded(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"":                            `""`,
		"<a href='x'>&</a>":           `"<a href='x'>&</a>"`,
		"é 漢 \U0001f600 \u2028":       `"é 漢 ` + "\U0001f600 \u2028" + `"`,
		"a\"b\\c\n\r\t\x00\x1f\x7f":   `"a\"b\\c\n\r\t\u0000\u001f` + "\x7f" + `"`,
		"cut in a rune: \xe6\xbc":     `"cut in a rune: ` + "\ufffd\ufffd" + `"`,
		"surrogate as bytes\xed\xa0x": `"surrogate as bytes` + "\ufffd\ufffd" + `x"`,
	} {
		if got := string(wire.Quote(text)); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestIntTakesWholeNumbersOnly(t *testing.T) {
	t.Parallel()

	for raw, want := range map[string]int{"0": 0, "-3": -3, "4096": 4096, "1.0": 1, "1e3": 1000} {
		if got, ok := wire.Int([]byte(raw)); !ok || got != want {
			t.Errorf("%s: %d, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{"", "1.5", "1e400", "-1e400", `"1"`, "null", "99999999999999999999", "NaN", "Inf", "0x10"} {
		if got, ok := wire.Int([]byte(raw)); ok {
			t.Errorf("%s: %d", raw, got)
		}
	}
}

func TestMediaSizesAreThoseOfTheBytes(t *testing.T) {
	t.Parallel()

	if got := wire.DecodedSize("aGVsbG8="); got != len("hello") {
		t.Errorf("got %d", got)
	}
	for url, want := range map[string]struct {
		kind string
		size int
	}{
		"data:image/png;base64,aGVsbG8=": {"image/png", 5},
		"data:text/plain,hello":          {"text/plain", 5},
		"data:,x":                        {"image_url", 1},
		"https://example.com/a.png":      {"image_url", 0},
	} {
		if kind, size := wire.DataURL(url, "image_url"); kind != want.kind || size != want.size {
			t.Errorf("%s: %s %d", url, kind, size)
		}
	}
}

func TestSessionNamesAreFoundInTheOrderOfTheContract(t *testing.T) {
	t.Parallel()

	for members, want := range map[string][2]string{
		`"metadata":{"user_id":"user_a_account_b_session_c-1"}`:                                      {"c-1", "metadata.user_id"},
		`"metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"c-2\"}","session_id":"other"}`: {"c-2", "metadata.user_id"},
		`"metadata":{"user_id":"alice","session_id":"c-3"},"prompt_cache_key":"k"`:                   {"c-3", "metadata.session_id"},
		`"prompt_cache_key":"k","conversation":"conv_1"`:                                             {"k", "prompt_cache_key"},
		`"conversation":"conv_1","previous_response_id":"resp_1"`:                                    {"conv_1", "conversation"},
		`"conversation":{"id":"conv_2"}`:                                                             {"conv_2", "conversation"},
		`"conversation":null,"previous_response_id":"resp_1"`:                                        {"resp_1", "previous_response_id"},
		`"prompt_cache_key":7,"metadata":[]`:                                                         {"", ""},
		`"prompt_cache_key":"` + strings.Repeat("x", 256) + `"`:                                      {"", ""},
		`"prompt_cache_key":"` + strings.Repeat("x", 255) + `"`:                                      {strings.Repeat("x", 255), "prompt_cache_key"},
	} {
		name, source := wire.SessionName(open(t, `{"input":[],`+members+`}`, "input"))
		if name != want[0] || source != want[1] {
			t.Errorf("%s: %q from %q", members, name, source)
		}
	}
}

// S45: two end users are never taken for one.
func TestEndUsersAreFoundInTheOrderOfTheContract(t *testing.T) {
	t.Parallel()

	for members, want := range map[string]string{
		`"user":"a","safety_identifier":"b","metadata":{"user_id":"c"}`:                                "a",
		`"safety_identifier":"b","metadata":{"user_id":"c"}`:                                           "b",
		`"metadata":{"user_id":"c"}`:                                                                   "c",
		`"user":7,"metadata":{"user_id":["c"]}`:                                                        "",
		`"metadata":{"user_id":"user_a_account_b_session_c-1"}`:                                        "user_a_account_b",
		`"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"c-2\"}"}`:  "d",
		`"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"e\",\"session_id\":\"c-2\"}"}`: "e",
		`"metadata":{"user_id":"{\"id\":\"d\"}"}`:                                                      `{"id":"d"}`,
		`"metadata":{"session_id":"c-3"},"prompt_cache_key":"k"`:                                       "",
	} {
		if got := wire.EndUser(open(t, `{"input":[],`+members+`}`, "input")); got != want {
			t.Errorf("%s: %q", members, got)
		}
	}
}

func TestOurErrorsCarryOpenAIsTypes(t *testing.T) {
	t.Parallel()

	for kind, want := range map[string]string{
		"authentication_error": "invalid_request_error", "not_found_error": "invalid_request_error",
		"invalid_request_error": "invalid_request_error", "rate_limit_error": "rate_limit_error",
		"billing_error": "insufficient_quota", "api_error": "server_error", "overloaded_error": "server_error",
	} {
		body := wire.Problem{Type: kind, Message: "m", Param: "input", Code: ""}.OpenAI()
		if got := string(body); got != `{"error":{"message":"m","type":"`+want+`","param":"input","code":null}}` {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
