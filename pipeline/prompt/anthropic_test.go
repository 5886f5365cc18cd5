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

// W13: where some messages are rewritten, all else keeps its bytes: numbers, order
// of keys, white space, members and blocks that nobody knows yet.
func TestARewriteLeavesEverythingElseAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 10_000)
	c := begun("claude-sonnet-4-5")
	c.filled(9, 1_000)
	odd := []string{
		`{ "content":[ {"type":"text", "text":"odd \u00e9 \ud83d\ude00","citations":null} ,{"type":"future_block","n":12345678901234567890,"z":1,"a":-0.0} ],"role":"user","future":1e400 }`,
		`{"role":"assistant","content":[{"input":{"z":1.0,"a":1E+2,"big":123456789012345678901234567890,"n":1e400},"name":"Bash","id":"toolu_odd","type":"tool_use", "future":[ ] }]}`,
		`{"role":"user","content":[{"type":"tool_result","content":[ {"type":"text","text":"ok"} ],"tool_use_id":"toolu_odd","is_error" : false}]}`,
	}
	head := `{ "model":"claude-sonnet-4-5",` + "\r\n\t" + `"max_tokens":1e3,"x":{"b":1,"a":[ 12345678901234567890,1e400 ]} , "messages" : [ `
	tail := ` ]` + "\n" + `, "system":"h\u00e9", "y":-0.0,"y":null }` + "\n"
	body := head + strings.Join(c.messages, " ,\n ") + " ,\n " + strings.Join(odd, " ,\t") + tail

	written := b.write([]byte(body)) // the provider does not know the future

	if written.Exchange.Report.Archived == 0 {
		t.Fatalf("no epoch: %+v", written.Exchange.Report)
	}
	sent := string(written.Body)
	if !strings.HasPrefix(sent, head) || !strings.HasSuffix(sent, strings.Join(odd, " ,\t")+tail) {
		t.Errorf("head, tail or odd messages were changed:\n%s", sent)
	}
	untouched, covers := 0, written.Exchange.Lane.Projection.Covers
	for i, message := range c.messages {
		if i >= covers {
			untouched++
			holds(t, written.Body, message)
		}
	}
	if untouched == 0 || covers == 0 {
		t.Errorf("%d messages untouched behind %d", untouched, covers)
	}
}

// W28: the last five turns, the system prompt, the tools and every other member
// are the client's bytes; so is the running tool loop.
func TestTheNewestTurnsAndTheHeadStayAsTheyCame(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 60_000)
	session := sessiontest.Generate(6, sessiontest.Options{
		Model: "claude-opus-4-6", Turns: 120, Parallel: true, Thinking: true, TargetTokens: 120_000, Signer: b.double, ToolErrors: true,
	})
	for step, body := range session.Bodies() {
		written := b.send(body)
		for _, name := range []string{"system", "tools", "model", "max_tokens", "thinking"} {
			if b.member(written.Body, name) != b.member(body, name) {
				t.Fatalf("step %d: %s was changed", step, name)
			}
		}
		turns := written.Exchange.Conversation.Turns
		from := turns[max(0, len(turns)-pipeline.SettingsOf[ipc.Config](b.config).PreserveLastTurns)].From
		sent, client := b.elements(written.Body), b.elements(body)
		newest := client[from:]
		for i, message := range newest {
			if at := len(sent) - len(newest) + i; at < 0 || !bytes.Equal(sent[at], message) {
				t.Fatalf("step %d: message %d was changed", step, from+i)
			}
		}
	}
	if b.epochs == 0 {
		t.Error("there was no epoch")
	}
}

// W27: each call keeps its id and has its result in the very next message, results
// before text, whatever is compressed; n calls at a time.
func TestParallelCallsKeepTheirResults(t *testing.T) {
	t.Parallel()
	for level, window := range map[int]int{1: 14_000, 2: 14_000, 3: 7_000} {
		b := newBench(t, conversation.Anthropic, window)
		pipeline.Change[ipc.Config](&b.config).DeepestLevel = level
		c := begun("claude-sonnet-4-5")
		for i := range 8 {
			var calls, results []string
			for j := range 4 {
				id := fmt.Sprintf("toolu_%d_%d", i, j)
				calls = append(calls, call(id))
				results = append([]string{result(id, quoted(words(450)))}, results...)
			}
			c.assistant(append([]string{said("Four at once.")}, calls...)...).user(append(results, said("Use tabs."))...)
		}
		written := b.epoch(c.body())
		calls := bytes.Count(written.Body, []byte(`"type":"tool_use"`))
		if results := bytes.Count(written.Body, []byte(`"type":"tool_result"`)); results != calls || level == 1 && calls != 32 || level > 1 && calls == 32 {
			t.Errorf("level %d: %d calls, %d results", level, calls, results)
		}
		if written.Exchange.Report.Levels[level] == 0 {
			t.Errorf("no turn at level %d: %v", level, written.Exchange.Report.Levels)
		}
	}
}

// W32: system messages stay among the messages, where they may stand, and those
// that change the tools keep every byte, from epoch to epoch.
func TestSystemMessagesKeepALegalPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 14_000)
	c := begun("claude-opus-5")
	system := func(text string) string {
		return fmt.Sprintf(`{"role":"system","content":[%s,{"type":"tool_addition","tools":[{"type":"tool_reference","tool_name":"Later"}]},{"type":"tool_removal","tools":[]}],"output_config":{"effort":"high"},"clear_at":"next_user_message"}`, said(text))
	}
	var kept []string
	for i := range 12 {
		kept = append(kept, system(fmt.Sprintf("Mode %d.", i)))
		c.messages = append(c.messages, kept[i])
		c.filled(4, 700)
		b.send(c.body())
		if i%3 == 2 {
			c.assistant(said("That is done.")).user(said(fmt.Sprintf("Next task %d.", i)))
		}
	}
	written := b.send(append(c.body()[:0:0], c.body()...))
	holds(t, written.Body, kept...)
	if b.epochs < 2 || strings.Contains(b.member(written.Body, "system"), "Mode") {
		t.Errorf("%d epochs, system %q", b.epochs, b.member(written.Body, "system"))
	}
}

// W32, W36: a result that makes tools known to the model stays as it is.
func TestResultsThatLoadToolsStay(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 9_000)
	c := begun("claude-opus-5")
	loaded := `{"type":"tool_result","tool_use_id":"toolu_s","content":[` + said(words(100)) + `,{"type":"tool_reference","tool_name":"NotebookEdit"}]}`
	search := `{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_regex","input":{}},{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"tool_search_tool_search_result","tool_references":[]}}`
	c.filled(2, 900).assistant(call("toolu_s")).user(loaded).filled(1, 900).assistant(search, said("Found.")).user(said("Go on.")).filled(9, 600)

	written := b.epoch(c.body())

	holds(t, written.Body, loaded, search)
	if levels := written.Exchange.Report.Levels; levels[2]+levels[3] == 0 {
		t.Errorf("levels %v", levels)
	}
}

// W35: what is not a text leaves a placeholder, never its bytes and never an empty
// text; marks of failure stay.
func TestAttachmentsLeavePlaceholders(t *testing.T) {
	t.Parallel()
	const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}}`
	byFile := `{"type":"image","source":{"type":"file","file_id":"file_7"}}`
	document := `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"SECRET DOCUMENT"},"title":"t","citations":{"enabled":true}}`
	found := `{"type":"search_result","source":"https://x","title":"t","content":[{"type":"text","text":"SECRET RESULT"}]}`
	upload := `{"type":"container_upload","file_id":"file_8"}`
	failed := `{"type":"tool_result","tool_use_id":"toolu_b","is_error":true,"content":[` + said(words(400)) + "," + image + `]}`
	old := begun("claude-sonnet-4-5").assistant(said("Yes?")).user(image, byFile, document, found, upload, said("What are these?"))
	old.assistant(call("toolu_a"), call("toolu_b")).user(result("toolu_a", "["+image+","+document+","+found+"]"), failed).user(said("Next."))

	for level := 1; level <= 3; level++ {
		b := newBench(t, conversation.Anthropic, 9_000)
		pipeline.Change[ipc.Config](&b.config).DeepestLevel = level
		c := *old
		written := b.epoch(c.filled(10, 700).body())
		lacks(t, written.Body, `"text":""`, `"text":" "`)
		if level == 1 {
			holds(t, written.Body, `"tool_use_id":"toolu_b","is_error":true,"content":"item 0`, "[image/png, 45 bytes, archived as #4]", "[text/plain, 15 bytes, archived as #4]", "[search_result, archived as #4]", upload)
			lacks(t, written.Body, `"tool_use_id":"toolu_a","content":[`)
			continue
		}
		if level == 2 {
			holds(t, written.Body, "[image/png, 45 bytes, archived as #2]", "[text/plain, 15 bytes, archived as #2]")
		}
		lacks(t, written.Body, picture, "SECRET", "container_upload", "file_7")
	}
}

// W36: what a provider answered itself goes with its whole turn or stays with it,
// also where the answer came behind a client's result or after a pause.
func TestServerToolsStayTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 20_000)
	session := sessiontest.Generate(12, sessiontest.Options{Model: "claude-opus-5", Turns: 120, Parallel: true, Thinking: true, Varied: true, TargetTokens: 70_000, Signer: b.double})
	paused, pending := 0, 0
	kinds := map[string]bool{}
	for _, body := range session.Bodies() {
		written := b.send(body)
		for i, digest := range written.Exchange.Conversation.Digests {
			if projection := written.Exchange.Lane.Projection; projection == nil || i >= projection.Covers {
				continue
			}
			if digest.Flags.Has(conversation.HasPending) {
				pending++
			}
			for _, block := range wire.Elements(wire.Get(written.Exchange.Body.Element(i), "content")) {
				kinds[wire.Text(block, "type")] = true
			}
		}
		if client := b.elements(body); bytes.HasPrefix(client[len(client)-1], []byte(`{"role":"assistant"`)) {
			paused++
		}
	}
	for _, kind := range []string{"server_tool_use", "web_search_tool_result", "bash_code_execution_tool_result", "tool_search_tool_result", "mcp_tool_use", "mcp_tool_result", "container_upload", "redacted_thinking"} {
		if !kinds[kind] {
			t.Errorf("no %s was behind an epoch", kind)
		}
	}
	if b.epochs < 3 || paused == 0 || pending == 0 {
		t.Errorf("%d epochs, %d pauses, %d pending calls compressed", b.epochs, paused, pending)
	}
}
