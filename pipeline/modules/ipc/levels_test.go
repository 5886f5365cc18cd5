package ipc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
)

// small makes every turn but the newest one old, and an epoch reach L1.
func small(c *ipc.Config) { c.PreserveLastTurns, c.PreserveTokens = 1, 0 }

// filled ends a conversation with turns that make room for nothing else.
func (c *talk) filled(tokens int) *talk {
	return c.run("cat filler", words(tokens)).user("Go on.").run("true", "ok")
}

// A2, A7: a batch of parallel calls is cut or folded as one; thinking stays with it.
func TestAParallelBatchStaysTogether(t *testing.T) {
	t.Parallel()

	batch := (&talk{}).user("Look around, please.").add(
		`{"role":"assistant","content":[{"type":"thinking","thinking":"Three files.","signature":"c2ln"},{"type":"text","text":"I read three files."},`+
			`{"type":"tool_use","id":"a","name":"Read","input":{"file_path":"a.go"}},{"type":"tool_use","id":"b","name":"Read","input":{"file_path":"b.go"}},{"type":"tool_use","id":"c","name":"Bash","input":{"command":"make"}}]}`,
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":%s},{"type":"tool_result","tool_use_id":"b","content":"tiny"},{"type":"tool_result","tool_use_id":"c","is_error":true,"content":%s}]}`,
			quoted("package a "+words(600)), quoted("Exit code 2\nundefined: x"+words(600))),
	).filled(3_000)

	_, cut := epoch(t, batch.body(), 5_000, small, func(c *ipc.Config) { c.DeepestLevel = 1 })
	holds(t, cut, `"signature":"c2ln"`, `{"type":"tool_result","tool_use_id":"b","content":"tiny"}`, `"tool_use_id":"c","is_error":true,"content":"Exit code 2\nundefined: x`, "characters archived as #2]")
	if bytes.Count(cut, []byte(`"tool_result"`)) != 3+2 {
		t.Errorf("results are missing: %s", cut)
	}

	_, folded := epoch(t, batch.body(), 1_000, small, func(c *ipc.Config) { c.DeepestLevel = 2 })
	lacks(t, folded, `"signature":"c2ln"`, `"id":"a"`, `"tool_use_id":"b"`)
	holds(t, folded, "[AUTO CONTEXT COMPRESSION]", "#0 User: Look around, please.", "#1 Assistant: I read three files.",
		"#1 Read(a.go)\\n", "#1 Bash(make) → error: Exit code 2 undefined: x")
}

// A3, W33: what was typed beside a tool result stays when the result is cut, without
// the marker that its client will have moved on by the next request.
func TestTextBesideAResultStays(t *testing.T) {
	t.Parallel()

	const text = `{"type":"text","text":"By the way, use tabs."`
	mixed := text + `,"cache_control":{"type":"ephemeral"}}`
	c := (&talk{}).user("Hello.").add(
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]}`,
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":%s},%s]}`, quoted(words(1_000)), mixed),
	).filled(3_000)

	_, sealed := epoch(t, c.body(), 5_000, small, func(c *ipc.Config) { c.DeepestLevel = 1 })

	holds(t, sealed, text+"}", "characters archived as #2]")
	lacks(t, sealed, "cache_control")
}

// A3, A13: the latest text that a person typed stays as it is, with its picture,
// even beside a result.
func TestTheLatestTypedMessageStays(t *testing.T) {
	t.Parallel()

	picture := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("iVBORw0KGgoAAAANSUhEUg", 40) + `"}}`
	typed := `{"role":"user","content":[{"type":"text","text":"Make it look like this."},` + picture + `]}`
	c := (&talk{}).user("Hello there, friend.").run("ls", words(500)).add(typed)
	for i := range 12 {
		c.run(fmt.Sprintf("step %d", i), words(700))
	}
	exchange, sealed := epoch(t, c.body(), 3_000, small)
	holds(t, sealed, typed)
	if exchange.Report.Levels[2]+exchange.Report.Levels[3] < 10 {
		t.Errorf("levels %v", exchange.Report.Levels)
	}

	beside := (&talk{}).user("Hello.").run("ls", "ok").add(
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]}`,
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":%s},{"type":"text","text":"Now use tabs instead."},%s]}`, quoted(words(900)), picture),
	)
	for i := range 12 {
		beside.run(fmt.Sprintf("step %d", i), words(700))
	}
	_, sealed = epoch(t, beside.body(), 3_000, small)
	holds(t, sealed, `{"type":"text","text":"Now use tabs instead."},`+picture, "characters archived as #4]")
}

// A13: an older picture is replaced whole by a line that says what it was.
func TestOldMediaBecomeAPlaceholder(t *testing.T) {
	t.Parallel()

	data := strings.Repeat("QUJD", 60_000)
	c := (&talk{}).add(
		`{"role":"user","content":[{"type":"text","text":"What is wrong in this screenshot?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+data+`"}}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Screenshot","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"taken"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"`+data+`"}}]}]}`,
	).filled(3_000)

	_, cut := epoch(t, c.body(), 5_000, small, func(c *ipc.Config) { c.DeepestLevel = 1 })
	holds(t, cut, `"content":"taken\n[image/jpeg, 180,000 bytes, archived as #2]"`, `"media_type":"image/png"`)

	_, folded := epoch(t, c.body(), 1_000, small, func(c *ipc.Config) { c.DeepestLevel = 2 })
	holds(t, folded, "#0 User: [image/png, 180,000 bytes, archived as #0] What is wrong in this screenshot?")
	lacks(t, folded, data[:100])
}

// elsewhere writes turns of another format than Anthropic's, each a call and a result
// of about so many tokens.
func elsewhere(format conversation.Format, turns, tokens int) []string {
	list := []string{`{"role":"user","content":"Hello there, friend."}`}
	for i := range turns {
		switch format {
		case conversation.OpenAIChat:
			list = append(list,
				fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"run","arguments":"{}"}}]}`, i),
				fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, i, quoted(words(tokens))))
		default:
			list = append(list,
				fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"run","arguments":"{}"}`, i),
				fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%s}`, i, quoted(words(tokens))))
		}
	}
	return list
}

// sendTo sends messages of a format and demands an epoch. What goes out is not judged.
func sendTo(t *testing.T, format conversation.Format, limit int, messages ...string) []byte {
	t.Helper()
	lane := newLane(t, limit, small)
	lane.Codec = codecs()[format]
	exchange, sealed := lane.Send(t, fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":1000,%q:[%s]}`, lane.Codec.List(), strings.Join(messages, ",")))
	if exchange.Report.Compression != pipeline.Epoch {
		t.Fatalf("%s: %+v", format, exchange.Report)
	}
	return sealed
}

// A4: a call that waits for its result is never touched, nor is a result made up.
func TestAPendingCallIsNeverTouched(t *testing.T) {
	t.Parallel()

	for format, pending := range map[conversation.Format]string{
		conversation.Anthropic:       `{"role":"assistant","content":[{"type":"tool_use","id":"p","name":"Bash","input":{"command":"sleep 60"}},{"type":"tool_use","id":"q","name":"Bash","input":{}}]}`,
		conversation.OpenAIChat:      `{"role":"assistant","content":null,"tool_calls":[{"id":"p","type":"function","function":{"name":"run","arguments":"{ \"n\": 60 }"}}]}`,
		conversation.OpenAIResponses: `{"type":"function_call","call_id":"p","name":"run","arguments":"{ \"n\": 60 }"}`,
	} {
		messages := (&talk{}).user("Hello.").run("ls", words(2_000)).filled(3_000).messages
		if format != conversation.Anthropic {
			messages = elsewhere(format, 6, 900)
		}

		sealed := sendTo(t, format, 4_000, append(messages, pending)...)

		if !bytes.HasSuffix(sealed, []byte(","+pending+"]}")) || bytes.Count(sealed, []byte(`"p"`)) != 1 {
			t.Errorf("%s: %s", format, sealed)
		}
	}
}

// A5: what a client sends twice goes out twice, untouched: it is not ours to mend.
func TestADuplicateIsNotMended(t *testing.T) {
	t.Parallel()

	call := `{"type":"tool_use","id":"d","name":"Bash","input":{"command":"ls"}}`
	first := `{"type":"tool_result","tool_use_id":"d","content":` + quoted(words(600)) + `}`
	chatCall := `{"id":"d","type":"function","function":{"name":"run","arguments":"{}"}}`
	for name, test := range map[string]struct {
		format conversation.Format
		double []string
	}{
		"a result": {conversation.Anthropic, []string{
			`{"role":"assistant","content":[` + call + `]}`, `{"role":"user","content":[` + first + `,{"type":"tool_result","tool_use_id":"d","content":"again"}]}`,
		}},
		"a call": {conversation.Anthropic, []string{
			`{"role":"assistant","content":[` + call + `,` + call + `]}`, `{"role":"user","content":[` + first + `]}`,
		}},
		"both": {conversation.Anthropic, []string{
			`{"role":"assistant","content":[` + call + `,` + call + `]}`, `{"role":"user","content":[` + first + `,` + first + `]}`,
		}},
		"a tool message of Chat": {conversation.OpenAIChat, []string{
			`{"role":"assistant","content":null,"tool_calls":[` + chatCall + `]}`, `{"role":"tool","tool_call_id":"d","content":` + quoted(words(600)) + `}`, `{"role":"tool","tool_call_id":"d","content":"again"}`,
		}},
		"a call of Chat": {conversation.OpenAIChat, []string{
			`{"role":"assistant","content":null,"tool_calls":[` + chatCall + `,` + chatCall + `]}`, `{"role":"tool","tool_call_id":"d","content":` + quoted(words(600)) + `}`,
		}},
		"an output of Responses": {conversation.OpenAIResponses, []string{
			`{"type":"function_call","call_id":"d","name":"run","arguments":"{}"}`, `{"type":"function_call_output","call_id":"d","output":` + quoted(words(600)) + `}`, `{"type":"function_call_output","call_id":"d","output":"again"}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages := (&talk{}).run("ls", words(2_000)).filled(3_000).messages
			if test.format != conversation.Anthropic {
				messages = elsewhere(test.format, 8, 900)[1:]
			}
			messages = append(append([]string{`{"role":"user","content":"Hello."}`}, test.double...), messages...)

			sealed := sendTo(t, test.format, 3_000, messages...)

			holds(t, sealed, strings.Join(test.double, ","))
		})
	}
}

// A8: a provider's own blocks go out byte for byte or with their whole turn.
func TestOpaqueBlocksTravelWholeOrNotAtAll(t *testing.T) {
	t.Parallel()

	search := `{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"go 1.26"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://go.dev","title":"Go","encrypted_content":"RW5jcnlwdGVk","page_age":null}]},` +
		`{"type":"text","text":"Go 1.26 is out. ` + words(800) + `"}]}`
	c := (&talk{}).user("What is new?").add(search).filled(3_000)

	_, cut := epoch(t, c.body(), 5_000, small, func(c *ipc.Config) { c.DeepestLevel = 1 })
	holds(t, cut, search)

	_, folded := epoch(t, c.body(), 1_000, small)
	lacks(t, folded, "srvtoolu_1", "RW5jcnlwdGVk")
}

// A9, W32: a system message inside the conversation stays where it may stand; of two
// that say the same the newer one.
func TestASystemMessageKeepsALegalPlace(t *testing.T) {
	t.Parallel()

	system := `{"role":"system","content":"The user has switched to plan mode."}`
	c := (&talk{}).user("Hello.").run("ls", words(1_500)).user("Plan it.").add(system).say("Here is the plan.").user("Do it.").run("make", words(1_500)).add(system)
	c.run("make install", words(1_500)).run("make test", words(1_500)).filled(2_000)
	body := bytes.Replace(c.body(), []byte("claude-sonnet-4-5"), []byte("claude-opus-5"), 1)

	exchange, sealed := epoch(t, body, 1_200, small)

	if bytes.Count(sealed, []byte(system)) != 1 || exchange.Report.Levels[2]+exchange.Report.Levels[3] == 0 {
		t.Errorf("levels %v: %s", exchange.Report.Levels, sealed)
	}
	holds(t, sealed, system+`,{"role":"assistant"`)
}

// E14: what a provider's own compaction stands for is not touched.
func TestAProvidersCompactionIsABoundary(t *testing.T) {
	t.Parallel()

	compaction := `{"role":"assistant","content":[{"type":"compaction","content":"What happened so far."}]}`
	c := (&talk{}).user("Hello."+words(1_000)).add(compaction).user("And now?").run("ls", words(2_000)).filled(3_000)
	lane := newLane(t, 4_000, small)

	exchange, sealed := lane.Send(t, c.body())

	if exchange.Lane.Projection == nil {
		t.Fatalf("report: %+v", exchange.Report)
	}
	holds(t, sealed, strings.Join(c.messages[:2], ","))
}

// A9: roles take turns where another message of the user follows a record.
func TestRolesTakeTurnsBehindARecord(t *testing.T) {
	t.Parallel()

	c := &talk{}
	for i := range 12 {
		c.user(fmt.Sprintf("Question %d is about the handler.", i)).run("grep", words(300)).say(fmt.Sprintf("Answer %d is in the handler.", i))
	}
	exchange, sealed := epoch(t, c.user("And now?").body(), 1_500, small)

	envelope := elementsOf(t, codecs()[conversation.Anthropic], sealed)
	role := ""
	for i, raw := range envelope {
		message, err := codecs()[conversation.Anthropic].Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && message.Role != conversation.User || string(message.Role) == role {
			t.Errorf("message %d is of the %s behind one of the %s: %.300s %s", i, message.Role, role, raw, layout(exchange))
		}
		role = string(message.Role)
	}
}

func TestMaskingLeavesAPlaceholder(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Hello.").run("ls", "SECRET START "+words(1_000)).filled(3_000)
	_, sealed := epoch(t, c.body(), 5_000, small, func(c *ipc.Config) { c.ObservationMasking = true; c.DeepestLevel = 1 })

	holds(t, sealed, `"content":"[TOOL OUTPUT ARCHIVED] `, ` characters as #2"`)
	lacks(t, sealed, "SECRET START")
}

// A turn that went down stays down, and one epoch follows the other without an
// orphan (A6).
func TestLevelsOnlyGoDown(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 12_000)
	c := &talk{}
	var before []int
	for i := range 120 {
		exchange, _ := send(t, lane, c.user(fmt.Sprintf("Task %d, please.", i)).run("make", words(500)).body())
		levels := turnLevels(exchange)
		for turn, level := range before {
			if levels[turn] < level {
				t.Fatalf("request %d: turn %d went from L%d to L%d", i, turn, level, levels[turn])
			}
		}
		before = levels
	}
	if lane.Epochs < 3 || before[0] != 3 {
		t.Errorf("%d epochs, the first turn at L%d", lane.Epochs, before[0])
	}
}

func turnLevels(exchange *pipeline.Exchange) []int {
	levels := make([]int, len(exchange.Conversation.Turns))
	if exchange.Lane.Projection == nil {
		return levels
	}
	for i, turn := range exchange.Conversation.Turns {
		for _, part := range exchange.Lane.Projection.Parts {
			if part.From < turn.To && part.To > turn.From {
				levels[i] = max(levels[i], part.Level)
			}
		}
	}
	return levels
}

// What a client put in place of a history that it compacted itself is kept.
func TestAClientsOwnSummaryIsKept(t *testing.T) {
	t.Parallel()

	summary := "This session is being continued from a previous conversation that ran out of context.\nSummary: " + words(300)
	c := (&talk{}).user(summary)
	for i := range 30 {
		c.run(fmt.Sprintf("step %d", i), words(600)).user("Next.")
	}
	c.run("true", "ok")
	_, sealed := epoch(t, c.body(), 6_000, small)

	holds(t, sealed, quoted(summary), "[AUTO CONTEXT COMPRESSION]")
}

// A7: with thinking asked for by hand the running tool loop opens with thinking; a
// record of its calls goes before the turn that does.
func TestTheRunningLoopOpensWithThinking(t *testing.T) {
	t.Parallel()

	for name, every := range map[string]int{"now and then": 7, "once": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lane := newLane(t, 8_000, small)
			c := (&talk{}).user("Hello.").run("ls", words(900)).user("Port everything.")
			for i := range 60 {
				c.run(fmt.Sprintf("step %d", i), words(500))
				if i%every == 0 {
					last := len(c.messages) - 2
					c.messages[last] = strings.Replace(c.messages[last], `"content":[`, fmt.Sprintf(`"content":[{"type":"thinking","thinking":"Step %d.","signature":"c2ln%d"},`, i, i), 1)
				}
				body := bytes.Replace(c.body(), []byte(`"max_tokens":1000`), []byte(`"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000}`), 1)
				exchange, sealed := send(t, lane, body)
				if exchange.Report.After > 6_000 {
					t.Fatalf("step %d: %d of %d, levels %v", i, exchange.Report.After, exchange.Limits.Limit, exchange.Report.Levels)
				}
				holds(t, sealed, "Port everything.")
			}
			if lane.Epochs == 0 || lane.Epochs > 15 {
				t.Errorf("%d epochs", lane.Epochs)
			}
		})
	}
}
