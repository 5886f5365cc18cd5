package providerdouble_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

const (
	itemUser  = `{"role":"user","content":"a"}`
	itemCallX = `{"type":"function_call","call_id":"call_X","name":"read","arguments":"{}"}`
	itemOutX  = `{"type":"function_call_output","call_id":"call_X","output":"x"}`
)

func responsesBody(test ruleCase) []byte {
	extra := test.extra
	if extra != "" {
		extra += ","
	}
	return fmt.Appendf(nil, `{"model":"gpt-5.5",%s"input":[%s]}`, extra, strings.Join(test.list, ","))
}

// A1 A8 W40
func TestItemsArePaired(t *testing.T) {
	t.Parallel()
	signer := providerdouble.NewSigner(nil)
	reasoning := signer.ReasoningID("1")
	thoughtItem := fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":%q}`, reasoning, signer.Redact("r"))
	led := fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":"call_X","name":"read","arguments":"{}"}`, signer.ItemID("fc_", "1", reasoning))
	said := fmt.Sprintf(`{"type":"message","id":%q,"role":"assistant","content":[{"type":"output_text","text":"b"}]}`, signer.ItemID("msg_", "1", reasoning))
	custom := `{"type":"custom_tool_call","call_id":"call_X","name":"run","input":"x"}`
	checkRules(t, providerdouble.OpenAIResponses, providerdouble.Config{}, responsesBody, []ruleCase{
		{name: "pair", list: []string{itemUser, itemCallX, itemOutX}},
		{name: "pair far apart", list: []string{itemUser, itemCallX, itemUser, itemOutX}},
		{name: "reasoning with its call", list: []string{itemUser, thoughtItem, led, itemOutX}},
		{name: "reasoning with its message", list: []string{itemUser, thoughtItem, said, itemUser}},
		{name: "call alone", list: []string{itemUser, itemCallX}, want: "No tool output found for function call call_X."},
		{name: "output alone", list: []string{itemUser, itemOutX}, want: "No tool call found for function call output with call_id call_X."},
		{name: "output before its call", list: []string{itemUser, itemOutX, itemCallX}, want: "No tool call found for function call output with call_id call_X."},
		{name: "custom call with the other output", list: []string{itemUser, custom, itemOutX}, want: "No tool call found for function call output with call_id call_X."},
		{name: "custom call alone", list: []string{itemUser, custom}, want: "No tool output found for custom tool call call_X."},
		{name: "output twice", list: []string{itemUser, itemCallX, itemOutX, itemOutX}, want: "Duplicate function call output found with call_id call_X."},
		{name: "call twice", list: []string{itemUser, itemCallX, itemOutX, itemCallX, itemOutX}, want: "Duplicate function call found with call_id call_X."},
		{name: "item twice", list: []string{itemUser, said, said}, want: fmt.Sprintf("Duplicate item found with id %s. Remove duplicate items from your input and try again.", signer.ItemID("msg_", "1", reasoning))},
		{name: "call without its reasoning", list: []string{itemUser, led, itemOutX},
			want: fmt.Sprintf("Item '%s' of type 'function_call' was provided without its required 'reasoning' item: '%s'.", signer.ItemID("fc_", "1", reasoning), reasoning)},
		{name: "message without its reasoning", list: []string{itemUser, said, itemUser},
			want: fmt.Sprintf("Item '%s' of type 'message' was provided without its required 'reasoning' item: '%s'.", signer.ItemID("msg_", "1", reasoning), reasoning)},
		{name: "reasoning at the end", list: []string{itemUser, thoughtItem}, want: fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", reasoning)},
		{name: "reasoning before the user", list: []string{itemUser, thoughtItem, itemUser}, want: fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", reasoning)},
		{name: "reasoning before an output", list: []string{itemUser, itemCallX, thoughtItem, itemOutX}, want: fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", reasoning)},
		{name: "reasoning tampered", list: []string{itemUser, strings.Replace(thoughtItem, `"encrypted_content":"`, `"encrypted_content":"AAAA`, 1), led, itemOutX},
			want: fmt.Sprintf("The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", reasoning)},
		{name: "compaction tampered", list: []string{itemUser, `{"type":"compaction","id":"cmp_1","encrypted_content":"AAAA"}`},
			want: "The encrypted content for item cmp_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed."},
		{name: "compaction", list: []string{itemUser, fmt.Sprintf(`{"type":"compaction","id":"cmp_1","encrypted_content":%q}`, signer.Redact("c")), itemUser}},
	})
}

func TestItemsHaveAShape(t *testing.T) {
	t.Parallel()
	kinds := "'message', 'function_call', "
	double := providerdouble.NewHandler(providerdouble.Config{})
	if err := double.Validate(providerdouble.OpenAIResponses, responsesBody(ruleCase{list: []string{`{"type":"hologram"}`}})); err == nil ||
		!strings.HasPrefix(err.Error(), "Invalid value: 'hologram'. Supported values are: "+kinds) {
		t.Fatalf("an unknown item answers %v", err)
	}
	checkRules(t, providerdouble.OpenAIResponses, providerdouble.Config{}, responsesBody, []ruleCase{
		{name: "no items", list: nil, want: "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."},
		{name: "text parts", list: []string{`{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x/y.png"}]}`}},
		{name: "input text in an answer", list: []string{itemUser, `{"role":"assistant","content":[{"type":"input_text","text":"b"}]}`}, want: "Invalid value: 'input_text'. Supported values are: 'output_text', and 'refusal'."},
		{name: "output text by the user", list: []string{`{"role":"user","content":[{"type":"output_text","text":"b"}]}`},
			want: "Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', 'input_file', and 'input_audio'."},
		{name: "tool role", list: []string{`{"role":"tool","content":"x"}`}, want: "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'."},
		{name: "call without name", list: []string{itemUser, `{"type":"function_call","call_id":"c","arguments":"{}"}`}, want: "Missing required parameter: 'input[1].name'."},
		{name: "arguments as object", list: []string{itemUser, `{"type":"function_call","call_id":"c","name":"a","arguments":{}}`},
			want: "Invalid type for 'input[1].arguments': expected a string, but got an object instead."},
		{name: "output without output", list: []string{itemUser, itemCallX, `{"type":"function_call_output","call_id":"call_X"}`}, want: "Missing required parameter: 'input[2].output'."},
		{name: "output as number", list: []string{itemUser, itemCallX, `{"type":"function_call_output","call_id":"call_X","output":1}`},
			want: "Invalid type for 'input[2].output': expected one of a string or array of objects, but got a number instead."},
		{name: "wrong id", list: []string{itemUser, `{"type":"function_call","id":"call_1","call_id":"c","name":"a","arguments":""}`}, want: "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'."},
		{name: "reasoning without summary", list: []string{itemUser, `{"type":"reasoning","id":"rs_1"}`}, want: "Missing required parameter: 'input[1].summary'."},
		{name: "unknown top member", extra: `"messages":[]`, list: []string{itemUser}, want: "Unknown parameter: 'messages'."},
		{name: "few tokens", extra: `"max_output_tokens":5`, list: []string{itemUser}, want: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 5 instead."},
		{name: "unknown response", extra: `"previous_response_id":"resp_1"`, list: []string{itemUser}, want: "Previous response with id 'resp_1' not found."},
	})
}

func TestWhatOnlyTheServerKnowsMustBeStored(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{})
	for item, want := range map[string]string{
		`{"type":"item_reference","id":"msg_1"}`:        "Item with id 'msg_1' not found.",
		`{"type":"reasoning","id":"rs_1","summary":[]}`: "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
	} {
		body := responsesBody(ruleCase{list: []string{itemUser, item, `{"role":"assistant","content":"b"}`, itemUser}})
		err := double.Validate(providerdouble.OpenAIResponses, body)
		var rejection *providerdouble.Rejection
		if !errors.As(err, &rejection) || rejection.Message != want || rejection.Status != 404 {
			t.Fatalf("answer is %+v", rejection)
		}
		double.Trust(body)
		if err = double.Validate(providerdouble.OpenAIResponses, body); err != nil {
			t.Fatalf("a trusted item is refused: %v", err)
		}
	}
}

func TestResponsesOverflowUnlessItTruncates(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{Window: 1000})
	body := ruleCase{list: []string{`{"role":"user","content":"` + words(1000) + `"}`}}
	var rejection *providerdouble.Rejection
	if err := double.Validate(providerdouble.OpenAIResponses, responsesBody(body)); !errors.As(err, &rejection) || rejection.Code != "context_length_exceeded" ||
		rejection.Message != "Your input exceeds the context window of this model. Please adjust your input and try again." {
		t.Fatalf("answer is %+v", rejection)
	}
	body.extra = `"truncation":"auto"`
	if err := double.Validate(providerdouble.OpenAIResponses, responsesBody(body)); err != nil {
		t.Fatalf("truncation auto is refused: %v", err)
	}
}
