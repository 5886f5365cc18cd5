package prompt_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/sessiontest"
)

// list writes a conversation of OpenAI's formats, element by element.
type list struct {
	head, name string
	elements   []string
	calls      int
}

func (l *list) add(elements ...string) *list {
	l.elements = append(l.elements, elements...)
	return l
}

func (l *list) body() []byte {
	return fmt.Appendf(nil, `{%s,%q:[%s]}`, l.head, l.name, strings.Join(l.elements, ","))
}

func chat() *list { return &list{head: `"model":"gpt-4.1"`, name: "messages"} }

// filledChat adds turns, each with a result of about so many tokens.
func (l *list) filledChat(turns, tokens int) *list {
	for range turns {
		l.calls++
		l.add(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_f%d","type":"function","function":{"name":"run","arguments":"{}"}}]}`, l.calls),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_f%d","content":%s}`, l.calls, quoted(words(tokens))))
	}
	return l
}

// The AI SDK refers to what the model thought and said, where OpenAI stores it. References are no
// reason to leave a prompt as it is: they go with their turn or stay as they are.
func TestReferencesToWhatTheModelSaidGoWithTheirTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 12_000)
	l := (&list{head: `"model":"gpt-5.1-codex"`, name: "input"}).add(`{"role":"user","content":"Please begin."}`)
	for i := range 20 {
		l.add(fmt.Sprintf(`{"type":"item_reference","id":"rs_%d"}`, i), fmt.Sprintf(`{"type":"item_reference","id":"msg_%d"}`, i),
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"run","arguments":"{}"}`, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%s}`, i, quoted(words(1_000))))
	}
	b.double.Trust(l.body())
	written := b.send(l.body())
	if report := written.Exchange.Report; report.Compression != pipeline.Epoch || report.After > report.Limit/2 {
		t.Fatalf("%+v", report)
	}
	sent, kept := string(written.Body), 0
	for i := range 20 {
		turn := strings.Join(l.elements[1+4*i:4+4*i], ",")
		if strings.Contains(sent, turn) {
			kept++
		} else if strings.Contains(sent, fmt.Sprintf(`_%d"`, i)) {
			t.Errorf("only a part of turn %d was sent: %s", i, sent)
		}
	}
	if kept == 0 || kept > 15 {
		t.Errorf("%d of 20 turns stayed", kept)
	}
	exchange := written.Exchange
	b.writer.Answered(written.Sent(), wire.Answer{Usage: wire.Usage{Reported: true, Input: exchange.Report.After * 3 / 2}})
	if factor := b.writer.Calibration.Factor(b.scope.Workspace, exchange.Model); factor != exchange.Limits.Factor {
		t.Errorf("a prompt that is known in part taught that tokens are %v times as many, not %v", factor, exchange.Limits.Factor)
	}
}

// W39: leading developer and system messages stay first; a turn with several calls
// keeps all of its tool messages right behind it; names, refusals and the ids of
// spoken answers stay with their messages.
func TestChatKeepsItsShape(t *testing.T) {
	t.Parallel()
	const (
		developer = `{"role":"developer","content":[{"type":"text","text":"be h\u00e9"}],"n":1e400}`
		second    = `{"role":"system","content":"two"}`
		named     = `{"role":"user","name":"ann","content":"Who spoke?"}`
		spoken    = `{"role":"assistant","audio":{"id":"audio_1"},"content":null}`
		refused   = `{"role":"assistant","content":null,"refusal":"I will not."}`
		parts     = `{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`
		middle    = `{"role":"developer","content":"the mode has changed"}`
	)
	calls := `{"role":"assistant","content":"Three.","refusal":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"run","arguments":"{ \"n\": 1.0 }"}},{"id":"call_b","type":"custom","custom":{"name":"patch","input":"*** é"}},{"id":"call_c","type":"function","function":{"name":"run","arguments":"{}"}}]}`
	results := []string{
		`{"role":"tool","tool_call_id":"call_c","content":[{"type":"text","text":` + quoted(words(500)) + `},{"type":"text","text":"x"}]}`,
		`{"role":"tool","tool_call_id":"call_a","content":` + quoted(words(500)) + `}`,
		`{"role":"tool","tool_call_id":"call_b","content":"ok"}`,
	}
	for level := 1; level <= 3; level++ {
		b := newBench(t, conversation.OpenAIChat, 9_000)
		settings := pipeline.Change[ipc.Config](&b.config)
		settings.DeepestLevel, settings.CompressTo, settings.PreserveLastTurns = level, 0.10, 1
		c := chat().add(developer, second, named, spoken, `{"role":"user","content":"Again?"}`, refused, `{"role":"user","content":"Please."}`, middle, parts, `{"role":"user","content":"Then run it."}`, calls)
		c.add(results...).add(`{"role":"assistant","content":"Done."}`, `{"role":"user","name":"bob","content":"Go on."}`).filledChat(16, 700)

		written := b.write(c.body())
		if err := b.double.Validate("openai-chat", bytes.ReplaceAll(written.Body, []byte(`,"n":1e400`), nil)); err != nil {
			t.Fatalf("level %d: refused: %v", level, err)
		}
		if !bytes.HasPrefix(written.Body, []byte(`{"model":"gpt-4.1","messages":[`+developer+","+second+",")) {
			t.Errorf("level %d: the head is %.300s", level, written.Body)
		}
		holds(t, written.Body, middle, `{"role":"user","name":"bob","content":"Go on."}`)
		switch level {
		case 1:
			holds(t, written.Body, named, spoken, refused, parts, calls, `{"role":"tool","tool_call_id":"call_c","content":"item 0`, results[2])
		default:
			lacks(t, written.Body, "call_a", "call_b", "call_c")
		}
		if written.Exchange.Report.Levels[level] == 0 {
			t.Errorf("no turn at level %d: %v", level, written.Exchange.Report.Levels)
		}
	}
}

// filledItems adds turns of Responses, each with an output of about so many tokens.
func (l *list) filledItems(turns, tokens int) *list {
	for range turns {
		l.calls++
		l.add(fmt.Sprintf(`{"type":"function_call","call_id":"call_f%d","name":"run","arguments":"{}"}`, l.calls),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_f%d","output":%s}`, l.calls, quoted(words(tokens))))
	}
	return l
}

// W40: reasoning, what it led to and the outputs stay or go together; sealed
// reasoning and items that only the provider reads keep every byte; a screenshot
// has no shorter form and stays until its turn goes.
func TestResponsesKeepUnitsTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 9_000)
	sealed := b.double.Redact("hm")
	reasoning := `{"type":"reasoning","id":"rs_1","summary":[ ],"encrypted_content":` + quoted(sealed) + `}`
	unit := []string{
		`{"type":"function_call","id":"fc_1","call_id":"c1","name":"run","arguments":"{\"n\":1.0}","status":"completed"}`,
		`{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"*** é"}`,
		`{"type":"shell_call","call_id":"c3","action":{"commands":["ls"]}}`,
		`{"type":"computer_call","id":"cu_1","call_id":"c4","action":{"type":"screenshot"},"pending_safety_checks":[]}`,
	}
	screenshot := `{"type":"computer_call_output","call_id":"c4","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,aGVsbG8="}}`
	outputs := []string{
		`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":` + quoted(words(300)) + `},{"type":"input_image","image_url":"data:image/png;base64,aGVsbG8="}]}`,
		`{"type":"custom_tool_call_output","call_id":"c2","output":` + quoted(words(300)) + `}`,
		`{"type":"shell_call_output","call_id":"c3","output":[{"stdout":` + quoted(words(300)) + `,"stderr":"","outcome":{"type":"exit","exit_code":2}}]}`,
		screenshot,
	}
	fixed := []string{
		`{"type":"additional_tools","role":"developer","tools":[]}`, `{"type":"configuration_update","reasoning":{"effort":"high"}}`,
		`{"type":"tool_search_output","id":"tso_1","call_id":null,"execution":"server","status":"completed","tools":[]}`,
	}
	items := &list{head: `"model":"gpt-5.1-codex","store":false`, name: "input"}
	items.add(`{"role":"developer","content":"be brief"}`, `{"role":"user","content":"Begin."}`, reasoning).add(unit...).add(outputs...)
	items.add(`{"role":"user","content":"More."}`, fixed[0], fixed[1], `{"type":"tool_search_call","id":"tsc_1","call_id":null,"execution":"server","arguments":{},"status":"completed"}`, fixed[2])
	items.add(`{"role":"assistant","content":"Found."}`, `{"role":"user","content":"Go on."}`).filledItems(10, 700)

	pipeline.Change[ipc.Config](&b.config).DeepestLevel = 1
	cut := b.epoch(items.body())
	holds(t, cut.Body, append(append([]string{reasoning, screenshot, `"call_id":"c3","output":[{"stdout":"item 0`, `"outcome":{"type":"exit","exit_code":2}`}, unit...), fixed...)...)
	lacks(t, cut.Body, `{"type":"input_image"`)

	b = newBench(t, conversation.OpenAIResponses, 9_000)
	folded := b.epoch(items.body())
	lacks(t, folded.Body, "rs_1", "fc_1", `"c1"`, `"c2"`, `"c3"`, `"c4"`, sealed)
	holds(t, folded.Body, fixed...)
}

// W40: what a provider's own compaction stands for is not touched, and a request
// for one passes with its trigger last.
func TestCompactionItemsAreABoundary(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 12_000)
	compaction := `{"type":"compaction","id":"cmp_1","encrypted_content":` + quoted(b.double.Redact("cmp_1")) + `}`
	items := &list{head: `"model":"gpt-5.1-codex","store":false`, name: "input"}
	items.add(`{"role":"user","content":`+quoted("Begin. "+words(500))+`}`, compaction, `{"role":"user","content":"Go on."}`)
	before := strings.Join(items.elements[:2], ",")
	edited := b.epoch(items.filledItems(12, 800).body())
	holds(t, edited.Body, `"input":[`+before)

	asked := b.send(items.add(`{"type":"compaction_trigger"}`).body())
	if !bytes.Equal(asked.Body, items.body()) || b.epochs != 1 {
		t.Errorf("%d epochs, edited: %s", b.epochs, asked.Body)
	}
	small := newBench(t, conversation.OpenAIResponses, 12_000)
	small.epoch([]byte(strings.Replace(string(items.body()), `,{"type":"compaction_trigger"}`, "", 1)))
	small.writer.Window = 10_000 // as they came, the messages are longer
	if written := small.send(items.body()); !bytes.HasSuffix(written.Body, []byte(`,{"type":"compaction_trigger"}]}`)) || len(written.Body) >= len(items.body()) {
		t.Errorf("%d bytes of %d: %s", len(written.Body), len(items.body()), written.Body)
	}
}

// W40 on sessions with items of every kind: units stay whole from epoch to epoch.
func TestVariedItemsStayLegal(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 30_000)
	session := sessiontest.Generate(5, sessiontest.Options{
		Format: conversation.OpenAIResponses, Turns: 110, Parallel: true, Thinking: true, Varied: true, TargetTokens: 60_000, Signer: b.double,
	})
	kinds := map[string]bool{}
	for _, body := range session.Bodies() {
		written := b.send(body)
		for i := range written.Exchange.Conversation.Digests {
			if projection := written.Exchange.Lane.Projection; projection != nil && i < projection.Covers {
				kinds[wire.Text(written.Exchange.Body.Element(i), "type")] = true
			}
		}
	}
	for _, kind := range []string{"program", "program_output", "computer_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output", "mcp_call", "web_search_call", "configuration_update", "additional_tools"} {
		if !kinds[kind] {
			t.Errorf("no %s was behind an epoch", kind)
		}
	}
	if b.epochs < 2 {
		t.Errorf("%d epochs", b.epochs)
	}
}

// Wire fact 0.2: the provider leaves out reasoning behind an edited prefix. Nothing
// has to be sent for it, and what is learned of its counts stays sane.
func TestReasoningThatTheProviderLeavesOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 30_000)
	session := sessiontest.Generate(5, sessiontest.Options{
		Format: conversation.OpenAIResponses, Model: "gpt-6-sol", Turns: 120, Parallel: true, Thinking: true, TargetTokens: 80_000, Signer: b.double,
		Bind: func(head []byte) (sessiontest.Binder, error) { return b.double.BindItems(head) },
	})
	for step, body := range session.Bodies() {
		written := b.send(body)
		// The provider reports a tenth less: the reasoning that it left out.
		report := written.Exchange.Report
		tokens := written.Exchange.Estimate(written.Exchange.Lane.Projection)
		if b.epochs > 0 {
			tokens = tokens * 9 / 10
		}
		b.writer.Answered(written.Sent(), wire.Answer{Usage: wire.Usage{Reported: true, Input: tokens}})
		if report.After > report.Limit {
			t.Fatalf("step %d: %d tokens of %d", step, report.After, report.Limit)
		}
	}
	if factor := b.writer.Calibration.Factor(b.scope.Workspace, b.write(session.Body(0)).Exchange.Model); b.epochs == 0 || factor < 0.8 {
		t.Errorf("%d epochs, factor %f", b.epochs, factor)
	}
}
