package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/tenants"
)

// claudeAsks is how Claude Code 2.1.330 asks for its summary, its middle shortened.
const claudeAsks = `CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.

- Do NOT use Read, Bash, Grep, Glob, Edit, Write, or ANY other tool.
- Tool calls will be REJECTED and will waste your only turn — you will fail the task.
- Your entire response must be plain text: an <analysis> block followed by a <summary> block.

Your task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests and your previous actions.
This summary should be thorough in capturing technical details.

<example>
## Compact Instructions
When summarizing the conversation focus on typescript code changes and also remember the mistakes you made and how you fixed them.
</example>

<example>
# Summary instructions
When you are using compact - please focus on test output and code changes. Include file reads verbatim.
</example>


REMINDER: Do NOT call any tools. Respond with plain text only — an <analysis> block followed by a <summary> block. Tool calls will be rejected and you will fail the task.`

// codexAsks is how Codex 0.169.0 does.
const codexAsks = `You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM that will resume the task.

Include:
- Current progress and key decisions made
- Important context, constraints, or user preferences
- What remains to be done (clear next steps)
- Any critical data, examples, or references needed to continue

Be concise, structured, and focused on helping the next LLM seamlessly continue the work.
`

// compacting is a client whose session has been compacted and that asks for a summary.
type compacting struct {
	*proxy

	double  *providertest.Server
	path    string
	history []string // messages or items that the client has sent
	asks    string   // its request for a summary
	header  []string
	streams bool
}

// setupCompacting starts a client that has gone past its window once, so that a compaction of
// its history is ready.
func setupCompacting(t *testing.T, path string, streams bool) *compacting {
	t.Helper()
	c := &compacting{path: path, streams: streams, double: providertest.NewServer(t, providertest.Config{})}
	c.proxy = setupAt(t, c.double.URL)
	c.store.pipeline = tenants.PipelineConfig{Modules: "ipc,compaction-bridge", YAML: "compaction-bridge: {clientCompaction: answer}\nipc: {contextWindow: 30000, preserveTokens: 2000}"}
	switch path {
	case messagesPath:
		c.asks = claudeAsks
		c.header = []string{"User-Agent", "claude-cli/2.1.330 (external, cli)", "X-Claude-Code-Session-Id", "11111111-2222-4333-8444-555555555555"}
	case responsesPath:
		c.asks = codexAsks
		c.header = []string{"User-Agent", "codex_exec/0.169.0", "Session-Id", "01a1fd00-6840-7762-a94c-c33e9c0f109c"}
	}
	c.says("Always run gofmt before you commit, and never touch the folder vendor/legacy.\n\nRead all parts and add a way to delete orders.")
	for i := range 24 {
		c.calls(i, fmt.Sprintf("cat shop/part%d.go", i), strings.Repeat(fmt.Sprintf("func part%d() { return } ", i), 130))
	}
	if got := c.ask(); got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "epoch" {
		t.Fatalf("status %d, compression %s: %.300s", got.status, got.header.Get("X-Palimpsest-Compression"), got.body)
	}
	c.answers("I decided to keep deleted orders in a tombstone table instead of a flag.")
	c.says("Fine. Look at the failing test next.")
	c.asked(1)
	return c
}

// asked sends what the client has, an ordinary request, which the provider gets as the n-th after
// the first.
func (c *compacting) asked(int) {
	c.t.Helper()
	if got := c.ask(); got.status != http.StatusOK || got.header.Get("X-Palimpsest-Answered-From") != "" {
		c.t.Fatalf("status %d: %.300s", got.status, got.body)
	}
	c.answers("I look at the failing test of store_test.go.")
}

func (c *compacting) says(text string) {
	c.history = append(c.history, fmt.Sprintf(`{"role":"user","content":%s}`, quoted(text)))
}

func (c *compacting) answers(text string) {
	c.history = append(c.history, fmt.Sprintf(`{"role":"assistant","content":%s}`, quoted(text)))
}

func (c *compacting) calls(i int, command, result string) {
	arguments, _ := json.Marshal(map[string]string{"command": command})
	if c.path == messagesPath {
		c.history = append(c.history,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":%s}]}`, i, arguments),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}]}`, i, quoted(result)))
		return
	}
	c.history = append(c.history,
		fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"shell","arguments":%s}`, i, quoted(string(arguments))),
		fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%s}`, i, quoted(result)))
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// body returns a body with messages and more members.
func (c *compacting) body(messages []string, members string) string {
	list := strings.Join(messages, ",")
	if c.path == messagesPath {
		return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":20000,"stream":%t,"system":"You are Claude Code, Anthropic's official CLI for Claude."%s,"messages":[%s]}`, c.streams, members, list)
	}
	return fmt.Sprintf(`{"model":"gpt-5.5","store":false,"stream":%t,"instructions":"You are a coding agent running in the Codex CLI"%s,"input":[%s]}`, c.streams, members, list)
}

// ask sends the history.
func (c *compacting) ask() answer {
	c.t.Helper()
	return c.send(http.MethodPost, c.path, c.body(c.history, ""), c.header...)
}

// compact asks for a summary of the history.
func (c *compacting) compact(members string, header ...string) answer {
	c.t.Helper()
	asks := fmt.Sprintf(`{"role":"user","content":%s}`, quoted(c.asks))
	return c.send(http.MethodPost, c.path, c.body(append(c.history[:len(c.history):len(c.history)], asks), members), append(header, c.header...)...)
}

// report returns the report of the n-th recorded exchange.
func (c *compacting) report(n int) pipeline.Report {
	c.t.Helper()
	var report pipeline.Report
	if err := json.Unmarshal(c.last(n).Report, &report); err != nil {
		c.t.Fatal(err)
	}
	return report
}

// happened returns the bridge's event of a type; nil if there is none.
func happened(report pipeline.Report, kind string) *pipeline.Event {
	for i := range report.Events {
		if report.Events[i].Module == compactionbridge.Name && report.Events[i].Type == kind {
			return &report.Events[i]
		}
	}
	return nil
}

func TestAClientsCompactionIsAnsweredWithoutTheProvider(t *testing.T) {
	t.Parallel()
	for _, path := range []string{messagesPath, responsesPath} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprint(path, streams), func(t *testing.T) {
				t.Parallel()
				c := setupCompacting(t, path, streams)
				before := len(c.double.Requests())
				got := c.compact("")
				t.Log(string(got.body), got.header, fmt.Sprintf("%+v", c.report(3)))
				if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Answered-From") != "compaction" || len(c.double.Requests()) != before {
					t.Fatalf("status %d, %d requests: %.300s", got.status, len(c.double.Requests()), got.body)
				}
			})
		}
	}
}
