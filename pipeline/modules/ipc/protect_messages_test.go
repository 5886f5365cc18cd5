package ipc_test

import (
	"bytes"
	"fmt"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
)

// left is Claude Code's notice of the tokens that are left.
func left(tokens int) string {
	return fmt.Sprintf(`{"role":"system","content":"<system-reminder>\n<total_tokens>%d tokens left</total_tokens>\n</system-reminder>"}`, tokens)
}

// newestModel returns a body for a model that takes system messages inside the conversation.
func newestModel(c *talk) []byte {
	return bytes.Replace(c.body(), []byte("claude-sonnet-4-5"), []byte("claude-sonnet-5"), 1)
}

// deep has an epoch fold all that it may.
func deep(c *ipc.Config) { c.CompressTo = 0.01 }

// A16, W32: of notices of one kind the newest stays, at L1 already.
func TestNoticeThatALaterOneReplacesIsLeftOut(t *testing.T) {
	t.Parallel()
	c := (&talk{}).user("Hello.").run("ls", words(1_500)).add(left(900)).run("make", words(1_500)).add(left(800)).run("go test", words(100)).add(left(700))
	for _, deepest := range []int{1, 3} {
		exchange, sealed := epoch(t, newestModel(c), 2_500, small, func(c *ipc.Config) { c.DeepestLevel = deepest })
		if exchange.Report.Levels[0] > 2 {
			t.Errorf("levels %v", exchange.Report.Levels)
		}
		lacks(t, sealed, "900 tokens left")
		holds(t, sealed, left(700))
	}
}

// W32: instructions that hold on stay as they are and in order, behind the record.
func TestInstructionsThatHoldOnStayInOrder(t *testing.T) {
	t.Parallel()
	added := `{"role":"system","content":[{"type":"tool_addition","tools":[{"type":"tool_reference","tool_name":"A"}]}]}`
	removed := `{"role":"system","content":[{"type":"tool_removal","tools":[{"type":"tool_reference","tool_name":"A"}]}]}`
	c := (&talk{}).user("Hello.").run("ls", words(1_500)).add(added).run("make", words(1_500)).add(removed).run("make", words(100)).add(added)
	c.run("go test", words(100)).add(removed).run("go vet", words(100)).add(removed).run("go build", words(100))

	_, sealed := epoch(t, newestModel(c), 2_500, small, deep)

	at := 0
	for _, message := range []string{added, removed, added, removed} {
		next := bytes.Index(sealed[at:], []byte(message))
		if next < 0 {
			t.Fatalf("%s is missing or out of order behind byte %d: %s", message, at, sealed)
		}
		at += next + len(message)
	}
	if bytes.Contains(sealed[at:], []byte(removed)) {
		t.Error("of two in a row that say the same both stay")
	}
}

// W32: free text of many system messages stays as far as it has room, the newest first.
func TestSystemMessagesShareTheirRoomNewestFirst(t *testing.T) {
	t.Parallel()
	note := func(n int) string { return fmt.Sprintf(`{"role":"system","content":"Note %d: %s"}`, n, words(100)) }
	c := (&talk{}).user("Hello.")
	for n := range 8 {
		c.run("ls", words(500)).add(note(n))
	}
	c.run("make", words(50))

	_, sealed := epoch(t, newestModel(c), 5_000, small, deep)

	holds(t, sealed, note(7))
	lacks(t, sealed, "Note 0: ")
}

// W32: a system message that takes just the room there is stays, and with a token less of room it folds.
func TestSystemMessageThatJustFitsItsRoomStays(t *testing.T) {
	t.Parallel()
	note := fmt.Sprintf(`{"role":"system","content":"Note: %s"}`, words(300))
	c := (&talk{}).user("Hello.").run("ls", words(1_500)).add(note)
	at := len(c.messages) - 1
	c.run("make", words(1_500)).run("go test", words(50))
	exchange := pipelinetest.NewExchange(t, codecs()[conversation.Anthropic], newestModel(c), pipelinetest.Options{Counter: newCounter(t)})
	limit := 8 * (exchange.Conversation.Digests[at].Tokens + 40) // an eighth of the limit, with its surroundings
	if _, sealed := epoch(t, newestModel(c), limit, small, deep); !bytes.Contains(sealed, []byte(note)) {
		t.Errorf("the message is folded in a limit of %d", limit)
	}
	if _, sealed := epoch(t, newestModel(c), limit-1, small, deep); bytes.Contains(sealed, []byte(note)) {
		t.Errorf("the message stays in a limit of %d", limit-1)
	}
}

// A16: a tool that is found twice is made known once, by the newer result.
func TestToolsAreMadeKnownByTheirNewestResult(t *testing.T) {
	t.Parallel()
	found := func(id, tool string) []string {
		return []string{
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"ToolSearch","input":{}},{"type":"tool_use","id":"%sx","name":"Bash","input":{}}]}`, id, id),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":[{"type":"tool_reference","tool_name":%q}]},{"type":"tool_result","tool_use_id":"%sx","content":%s}]}`, id, tool, id, quoted(words(1_500))),
		}
	}
	c := (&talk{}).user("Hello.").add(found("t1", "Later")...).add(found("t2", "Other")...).add(found("t3", "Later")...).run("make", words(100)).run("make", words(100))

	_, sealed := epoch(t, newestModel(c), 2_500, small, deep)

	lacks(t, sealed, `"t1"`, `"t1x"`, `"t2x"`)
	holds(t, sealed, `"tool_use_id":"t2"`, `"tool_use_id":"t3"`)
}
