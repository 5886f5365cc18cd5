package providerdouble_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

func thought(signer *providerdouble.Signer, content string) string {
	return fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":%q}`, content, signer.Sign(content))
}

func callBlock(id string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"read","input":{}}`, id)
}

func resultOf(id string) string {
	return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"x"}`, id)
}

const modified = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."

// A7 W28 W31
func TestThinkingComesBackAsItWas(t *testing.T) {
	t.Parallel()
	const enabled, adaptive = `"thinking":{"type":"enabled","budget_tokens":2048}`, `"thinking":{"type":"adaptive"}`
	signer := providerdouble.NewSigner(nil)
	first, second := thought(signer, "first"), thought(signer, "second")
	signed := signer.CallID("1", []string{signer.Sign("first")})
	both := signer.CallID("2", []string{signer.Sign("first"), signer.Sign("second")})
	plain := signer.CallID("3", nil)
	redacted := fmt.Sprintf(`{"type":"redacted_thinking","data":%q}`, signer.Redact("hidden"))
	expected := "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
	const opus = "claude-opus-4-6"
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "whole loop", extra: enabled, list: []string{userA, assistantOf(first, callBlock(signed)), userOf(resultOf(signed))}},
		{name: "redacted opens the loop", extra: enabled, list: []string{userA, assistantOf(redacted, callBlock(plain)), userOf(resultOf(plain))}},
		{name: "later answer without thinking", extra: enabled, list: []string{userA, assistantOf(first, callBlock(signed)), userOf(resultOf(signed)), assistantOf(callBlock(plain)), userOf(resultOf(plain))}},
		{name: "older model, loop without", extra: enabled, list: []string{userA, assistantOf(callBlock(plain)), userOf(resultOf(plain))}, want: expected},
		{name: "older model, thinking off", list: []string{userA, assistantOf(callBlock(plain)), userOf(resultOf(plain))}},
		{name: "newer model, loop without", model: opus, extra: adaptive, list: []string{userA, assistantOf(callBlock(plain)), userOf(resultOf(plain))}},
		{name: "removed in the loop", model: opus, extra: adaptive, list: []string{userA, assistantOf(callBlock(signed)), userOf(resultOf(signed))}, want: "messages.1.content.0: " + modified},
		{name: "one of two removed", model: opus, extra: adaptive, list: []string{userA, assistantOf(text("b"), second, callBlock(both)), userOf(resultOf(both))}, want: "messages.1.content.1: " + modified},
		{name: "reordered", model: opus, extra: adaptive, list: []string{userA, assistantOf(second, first, callBlock(both)), userOf(resultOf(both), text("go on"))}, want: "messages.1.content.0: " + modified},
		{name: "removed in an earlier answer of the loop", model: opus, extra: adaptive,
			list: []string{userA, assistantOf(callBlock(signed)), userOf(resultOf(signed)), assistantOf(callBlock(plain)), userOf(resultOf(plain))}, want: "messages.1.content.0: " + modified},
		{name: "removed in an earlier turn", model: opus, extra: adaptive, list: []string{userA, assistantOf(callBlock(signed)), userOf(resultOf(signed)), assistantOf(text("b")), userA}},
		{name: "text changed", list: []string{userA, assistantOf(strings.Replace(first, "first", "frist", 1), text("b")), userA}, want: "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{name: "text emptied", list: []string{userA, assistantOf(strings.Replace(first, `"first"`, `""`, 1), text("b")), userA}, want: "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{name: "signature changed", list: []string{userA, assistantOf(text("b"), strings.Replace(first, `"signature":"A`, `"signature":"B`, 1)), userA}, want: "messages.1.content.1: Invalid `signature` in `thinking` block"},
		{name: "signature gone", list: []string{userA, assistantOf(`{"type":"thinking","thinking":"first"}`), userA}, want: "messages.1.content.0.thinking.signature: Field required"},
		{name: "hidden data changed", list: []string{userA, assistantOf(`{"type":"redacted_thinking","data":"AAAA"}`, text("b")), userA}, want: "messages.1.content.0: Invalid `data` in `redacted_thinking` block"},
		{name: "omitted text", list: []string{userA, assistantOf(thought(signer, ""), text("b")), userA}},
	})
}

func TestThinkingSettingsFitTheModel(t *testing.T) {
	t.Parallel()
	const effort = ` is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "disabled", model: "claude-opus-5-5", extra: `"thinking":{"type":"disabled"}`, list: []string{userA}, want: `"thinking.type.disabled"` + effort},
		{name: "enabled", model: "claude-opus-4-8", extra: `"thinking":{"type":"enabled","budget_tokens":2048}`, list: []string{userA}, want: `"thinking.type.enabled"` + effort},
		{name: "no budget", extra: `"thinking":{"type":"enabled"}`, list: []string{userA}, want: "thinking.enabled.budget_tokens: Field required"},
		{name: "small budget", extra: `"thinking":{"type":"enabled","budget_tokens":5}`, list: []string{userA}, want: "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
		{name: "budget of an adaptive one", model: "claude-opus-5-5", extra: `"thinking":{"type":"adaptive","budget_tokens":2048}`, list: []string{userA}, want: "thinking.adaptive.budget_tokens: Extra inputs are not permitted"},
		{name: "large budget", extra: `"thinking":{"type":"enabled","budget_tokens":4096}`, list: []string{userA},
			want: "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"},
		{name: "between tools, another model", model: "claude-opus-5-5", extra: `"thinking":{"type":"between_tools"}`, list: []string{userA}, want: `"thinking.type.between_tools" is not supported for this model.`},
		{name: "between tools knows no binding", model: "claude-sonnet-5-5", extra: `"thinking":{"type":"between_tools","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`, list: []string{userA}, want: "thinking.between_tools.block_binding: Extra inputs are not permitted"}, // W30
		{name: "thinking that is off knows no binding", extra: `"thinking":{"type":"disabled","block_binding":{}}`, list: []string{userA}, want: "thinking.disabled.block_binding: Extra inputs are not permitted"},
		{name: "an empty binding", model: "claude-opus-5-5", extra: `"thinking":{"type":"adaptive","block_binding":{}}`, list: []string{userA}},
		{name: "a missing binding", model: "claude-opus-5-5", extra: `"thinking":{"type":"adaptive","block_binding":null}`, list: []string{userA}},
		{name: "binding between tools", model: "claude-sonnet-5-5", extra: `"thinking":{"type":"between_tools"}`, list: []string{userA}},
	})
}

// W29
func TestBoundThinkingStandsBehindItsPrefix(t *testing.T) {
	t.Parallel()
	const model = "claude-opus-5-5"
	double := providerdouble.NewHandler(providerdouble.Config{BindThinking: true})
	head := `"system":[` + markedText("s", mark) + `]`
	binding, err := double.Bind([]byte(`{` + head + `}`))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range 3 {
		user, answer := text(fmt.Sprint("user ", i)), text(fmt.Sprint("answer ", i))
		mustAdd(t, binding, "user", user)
		signature := binding.Sign(fmt.Sprint("thought ", i))
		mustAdd(t, binding, "assistant", answer)
		list = append(list, userOf(user), assistantOf(fmt.Sprintf(`{"type":"thinking","thinking":"thought %d","signature":%q}`, i, signature), answer))
	}
	list = append(list, userA)
	edited := append([]string{`{"role":"user","content":"shortened"}`}, list[1:]...)
	without := func(i int) []string {
		copied := append([]string{}, list...)
		copied[i] = assistantOf(text(fmt.Sprint("answer ", i/2)))
		return copied
	}
	const drop, strict = `,"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`, `,"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}`
	const elsewhere = ".content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
	for _, test := range []ruleCase{
		{name: "untouched", extra: head, list: list},
		{name: "marker moved", extra: `"system":[` + text("s") + `]`, list: list},
		{name: "user as a string", extra: head, list: append([]string{`{"role":"user","content":"user 0"}`}, list[1:]...)},
		{name: "system changed", extra: `"system":"t"`, list: list, want: "messages.1" + elsewhere},
		{name: "tool added", extra: head + `,"tools":[{"name":"a","input_schema":{}}]`, list: list, want: "messages.1" + elsewhere},
		{name: "deferred tool added", extra: head + `,"tools":[{"name":"a","input_schema":{},"defer_loading":true}]`, list: list},
		{name: "message shortened", extra: head, list: edited, want: "messages.1" + elsewhere},
		{name: "message shortened, strict", extra: head + strict, list: edited, want: "messages.1" + elsewhere},
		{name: "message shortened, dropping", extra: head + drop, list: edited},
		{name: "first thought removed", extra: head, list: without(1)},
		{name: "last thought removed", extra: head, list: without(5)},
		{name: "gap", extra: head, list: without(3), want: "messages.5" + elsewhere},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rejection := double.Validate(providerdouble.Anthropic, bodyOf(model, test.extra, test.list...))
			if got := fmt.Sprint(rejection); test.want == "" && rejection != nil || test.want != "" && got != test.want {
				t.Fatalf("answer is\n%v\nwant\n%s", rejection, test.want)
			}
		})
	}
	relaxed := providerdouble.NewHandler(providerdouble.Config{})
	if err = relaxed.Validate(providerdouble.Anthropic, bodyOf(model, head, edited...)); err != nil {
		t.Fatalf("an older account is refused: %v", err)
	}
	if err = relaxed.Validate(providerdouble.Anthropic, bodyOf(model, head+strict, edited...)); err == nil {
		t.Fatal("an older account that asks for binding is not refused")
	}
	checkDropping(t, bodyOf(model, head+drop, edited...))
}

func mustAdd(t *testing.T, binding *providerdouble.Binding, role, block string) {
	t.Helper()
	if err := binding.Add(role, json.RawMessage(block)); err != nil {
		t.Fatal(err)
	}
}

// checkDropping sends an edited body whose thinking is to be dropped.
func checkDropping(t *testing.T, body []byte) {
	t.Helper()
	server := providertest.NewServer(t, providerdouble.Config{BindThinking: true})
	status, answer := post(t, server.URL+"/v1/messages", body, "Anthropic-Beta", "other-1, thinking-binding-controls-2026-08-01")
	if status != http.StatusOK || !strings.Contains(answer, `"input_transformations":[{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"},{"type":"thinking_dropped","path":"messages.3.content.0"`) {
		t.Fatalf("answer is %d %s", status, answer)
	}
	status, answer = post(t, server.URL+"/v1/messages", body)
	if status != http.StatusBadRequest || !strings.Contains(answer, "thinking.adaptive.block_binding: Extra inputs are not permitted") {
		t.Fatalf("answer without the beta header is %d %s", status, answer)
	}
	plain := strings.Replace(string(body), `,"block_binding":{"prefix_mismatch_behavior":"drop_block"}`, "", 1)
	status, answer = post(t, server.URL+"/v1/messages", []byte(plain))
	if status != http.StatusBadRequest || !strings.Contains(answer, "That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.") {
		t.Fatalf("answer without the setting is %d %s", status, answer)
	}
}

// post sends a body as a client of Anthropic's would, with more headers.
func post(t *testing.T, url string, body []byte, headers ...string) (int, string) {
	t.Helper()
	response := send(t, url, body, headers...)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func send(t *testing.T, url string, body []byte, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", "sk-ant-test")
	request.Header.Set("Authorization", "Bearer sk-test")
	if strings.Contains(url, "/messages") {
		request.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestTrustAcceptsRecordedThinkingAndItsLoop(t *testing.T) {
	t.Parallel()
	foreign := `{"type":"thinking","thinking":"f","signature":"Zm9yZWlnbg=="}`
	body := bodyOf("claude-opus-4-6", `"thinking":{"type":"adaptive"}`, userA, assistantOf(foreign, callBlock("toolu_X")), userOf(resultX))
	double := providerdouble.NewHandler(providerdouble.Config{})
	if err := double.Validate(providerdouble.Anthropic, body); err == nil {
		t.Fatal("foreign thinking is accepted")
	}
	double.Trust(body)
	if err := double.Validate(providerdouble.Anthropic, body); err != nil {
		t.Fatalf("trusted thinking is refused: %v", err)
	}
	stripped := []byte(strings.Replace(string(body), foreign+",", "", 1))
	if err := double.Validate(providerdouble.Anthropic, stripped); err == nil || err.Error() != "messages.1.content.0: "+modified {
		t.Fatalf("removing trusted thinking from the loop answers %v", err)
	}
}
