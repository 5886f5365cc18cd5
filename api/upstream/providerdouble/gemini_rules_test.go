package providerdouble_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

const (
	geminiUser     = `{"role":"user","parts":[{"text":"a"}]}`
	geminiModel    = `{"role":"model","parts":[{"text":"b"}]}`
	geminiCalls    = `{"role":"model","parts":[{"functionCall":{"name":"read","args":{"p":1}}},{"functionCall":{"name":"list","args":{}}}]}`
	geminiAnswers  = `{"role":"user","parts":[{"functionResponse":{"name":"list","response":{"output":"x"}}},{"functionResponse":{"name":"read","response":{"output":"y"}}}]}`
	geminiOne      = `{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"y"}}}]}`
	callTurn       = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
	responseTurn   = "Please ensure that function response turn comes immediately after a function call turn."
	responseNumber = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
)

func geminiBody(test ruleCase) []byte {
	extra := test.extra
	if extra != "" {
		extra += ","
	}
	return fmt.Appendf(nil, `{"model":"gemini-2.5-pro","stream":false,%s"contents":[%s]}`, extra, strings.Join(test.list, ","))
}

// A1 A2 W39
func TestFunctionResponsesFollowTheirCalls(t *testing.T) {
	t.Parallel()
	checkRules(t, providerdouble.Gemini, providerdouble.Config{}, geminiBody, []ruleCase{
		{name: "answered in another order", list: []string{geminiUser, geminiCalls, geminiAnswers}},
		{name: "calls and responses in several contents", list: []string{geminiUser, geminiModel, geminiCalls, geminiOne, `{"role":"user","parts":[{"functionResponse":{"name":"list","response":{}}}]}`, geminiModel, geminiUser}},
		{name: "one missing", list: []string{geminiUser, geminiCalls, geminiOne}, want: responseNumber},
		{name: "pending at the end", list: []string{geminiUser, geminiCalls}, want: responseNumber},
		{name: "text between", list: []string{geminiUser, geminiCalls, geminiUser, geminiModel}, want: responseNumber},
		{name: "orphan", list: []string{geminiUser, geminiModel, geminiOne}, want: responseTurn},
		{name: "call first", list: []string{geminiCalls, geminiAnswers}, want: callTurn},
		{name: "of another function", list: []string{geminiUser, `{"role":"model","parts":[{"functionCall":{"name":"list"}}]}`, geminiOne}, want: responseTurn + " No call of read."},
	})
}

func TestContentsHaveAShape(t *testing.T) {
	t.Parallel()
	checkRules(t, providerdouble.Gemini, providerdouble.Config{}, geminiBody, []ruleCase{
		{name: "both spellings", list: []string{`{"role":"user","parts":[{"text":"a"},{"inline_data":{"mime_type":"image/png","data":"aGk="}}]}`}, extra: `"system_instruction":{"parts":[{"text":"s"}]},"generationConfig":{"maxOutputTokens":10}`},
		{name: "none", list: nil, want: "* GenerateContentRequest.contents: contents is not specified\n"},
		{name: "unknown role", list: []string{`{"role":"assistant","parts":[{"text":"a"}]}`}, want: "Please use a valid role: user, model."},
		{name: "no parts", list: []string{`{"role":"user","parts":[]}`}, want: "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n"},
		{name: "no data", list: []string{`{"role":"user","parts":[{}]}`}, want: "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field\n"},
		{name: "unknown member", list: []string{geminiUser}, extra: `"messages":[]`, want: `Invalid JSON payload received. Unknown name "messages": Cannot find field.`},
		{name: "unknown member of a part", list: []string{`{"role":"user","parts":[{"text":"a","type":"text"}]}`}, want: `Invalid JSON payload received. Unknown name "type" at 'contents[0].parts[0]': Cannot find field.`},
		{name: "response without an object", list: []string{geminiUser, `{"role":"model","parts":[{"functionCall":{"name":"n"}}]}`, `{"role":"user","parts":[{"functionResponse":{"name":"n","response":"x"}}]}`},
			want: `Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct), "x"`},
		{name: "cached content", list: []string{geminiUser}, extra: `"cachedContent":"cachedContents/x"`},
		{name: "cached content and tools", list: []string{geminiUser}, extra: `"cachedContent":"cachedContents/x","tools":[]`,
			want: "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request."},
	})
	checkRules(t, providerdouble.Gemini, providerdouble.Config{Window: 10}, geminiBody, []ruleCase{
		{name: "too long", list: []string{`{"role":"user","parts":[{"text":"` + strings.Repeat("a", 68) + `"}]}`}, want: "The input token count (20) exceeds the maximum number of tokens allowed (10)."},
	})
}

// W40: a signature belongs to exactly the part that it came with, and Gemini 3 wants it back.
func TestThoughtSignaturesAreVerified(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{})
	signed := func(signature, args string) string {
		return `{"role":"model","parts":[{"functionCall":{"name":"read","args":` + args + `},"thoughtSignature":"` + signature + `"}]}`
	}
	own := double.Sign("read\x00{\"p\":1}")
	bare := `{"role":"model","parts":[{"functionCall":{"name":"read","args":{"p":1}}}]}`
	for name, test := range map[string]struct {
		model string
		list  []string
		want  string
	}{
		"its own":                      {"gemini-3-pro-preview", []string{geminiUser, signed(own, `{"p":1}`), geminiOne}, ""},
		"another part's":               {"gemini-3-pro-preview", []string{geminiUser, signed(own, `{"p":2}`), geminiOne}, "Thought signature is not valid."},
		"for calls of another origin":  {"gemini-3-pro-preview", []string{geminiUser, signed("skip_thought_signature_validator", `{"p":2}`), geminiOne}, ""},
		"missing":                      {"gemini-3-pro-preview", []string{geminiUser, bare, geminiOne}, "Function call is missing a thought_signature"},
		"missing in an earlier turn":   {"gemini-3-pro-preview", []string{geminiUser, bare, geminiOne, geminiModel, geminiUser}, ""},
		"missing, of an earlier model": {"gemini-2.5-pro", []string{geminiUser, bare, geminiOne}, ""},
	} {
		err := double.Validate(providerdouble.Gemini, []byte(`{"model":"`+test.model+`","stream":false,"contents":[`+strings.Join(test.list, ",")+`]}`))
		if got := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.HasPrefix(got, test.want) && test.want != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
