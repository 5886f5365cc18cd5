package providerdouble_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

const (
	stepUser   = `{"type":"user_input","content":[{"type":"text","text":"a"}]}`
	stepModel  = `{"type":"model_output","content":[{"type":"text","text":"b"}]}`
	stepCall   = `{"type":"function_call","id":"c1","name":"read","arguments":{"p":1}}`
	stepOther  = `{"type":"function_call","id":"c2","name":"list","arguments":{}}`
	stepResult = `{"type":"function_result","call_id":"c1","result":"x"}`
)

func interactionsBody(test ruleCase) []byte {
	extra := test.extra
	if extra != "" {
		extra += ","
	}
	return fmt.Appendf(nil, `{"model":"gemini-3-pro-preview",%s"input":[%s]}`, extra, strings.Join(test.list, ","))
}

// A1 A2 W39
func TestInteractionsAreJudged(t *testing.T) {
	t.Parallel()
	checkRules(t, providerdouble.GeminiInteractions, providerdouble.Config{}, interactionsBody, []ruleCase{
		{name: "a whole turn", list: []string{stepUser, stepCall, stepResult, stepModel, stepUser}},
		{name: "contents", list: []string{`{"type":"text","text":"a"}`, `{"type":"image","uri":"https://x"}`}},
		{name: "parallel calls", list: []string{stepUser, stepCall, stepOther, stepResult, `{"type":"function_result","call_id":"c2","result":[{"type":"text","text":"x"}]}`}},
		{name: "one missing", list: []string{stepUser, stepCall, stepOther, stepResult}, want: "Invalid value for 'input': the last function calls have no results."},
		{name: "text between", list: []string{stepUser, stepCall, stepModel, stepResult}, want: "Invalid value for 'input[2]': a function call before it has no result."},
		{name: "orphan", list: []string{stepUser, stepResult}, want: "Invalid value for 'input[1].call_id': there is no function call 'c1'."},
		{name: "a foreign signature", list: []string{stepUser, `{"type":"thought","signature":"eA=="}`, stepModel}, want: "Invalid value for 'input[1].signature': the signature is not valid."},
		{name: "contents beside steps", list: []string{stepUser, `{"type":"text","text":"a"}`}, want: "Invalid value for 'input': expected a string, a content, a list of contents or a list of steps."},
		{name: "unknown member", list: []string{stepUser}, extra: `"messages":[]`, want: "Unknown parameter 'messages'."},
		{name: "unknown step", list: []string{`{"role":"user","content":"x"}`}, want: "Invalid value for 'input[0].type': ''."},
	})
}
