package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openairesponses"
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
	rules   string // at the end of the system prompt
	streams bool
}

// setupCompacting starts a client that has gone past its window once, so that a compaction of
// its history is ready.
func setupCompacting(t *testing.T, path string, streams bool) *compacting {
	t.Helper()
	c := &compacting{path: path, streams: streams, double: providertest.NewServer(t, providerdouble.Config{})}
	c.proxy = setupAt(t, c.double.URL)
	c.configure("compaction-bridge: {clientCompaction: answer}")
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
	c.asked()
	return c
}

// configure sets the pipeline of the workspace.
func (c *compacting) configure(yaml string) {
	c.store.mu.Lock()
	c.store.pipeline = tenants.PipelineConfig{Modules: "ipc,compaction-bridge", YAML: yaml + "\nipc: {contextWindow: 30000, preserveTokens: 2000, targetUtilization: 0.75, compressTo: 0.25}"}
	c.store.mu.Unlock()
	c.Settings.ForgetAll()
}

// asked sends what the client has, an ordinary request, and keeps an answer.
func (c *compacting) asked() {
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
		return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":20000,"stream":%t,"system":"You are Claude Code, Anthropic's official CLI for Claude.%s"%s,"messages":[%s]}`, c.streams, c.rules, members, list)
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
	return c.send(http.MethodPost, c.path, c.body(append(slices.Clip(c.history), asks), members), append(header, c.header...)...)
}

// recorded waits for what is recorded of an answer, one of n exchanges, and its report.
func (c *compacting) recorded(got answer, n int) (tenants.Exchange, pipeline.Report) {
	c.t.Helper()
	c.last(n) // in whatever order they are recorded
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for _, exchange := range c.store.exchanges {
		if exchange.ID.String() != got.header.Get("X-Palimpsest-Request-Id") {
			continue
		}
		var report pipeline.Report
		if err := json.Unmarshal(exchange.Prompt.Report, &report); err != nil {
			c.t.Fatal(err)
		}
		return exchange, report
	}
	c.t.Fatalf("%v is not recorded", got.header)
	return tenants.Exchange{}, pipeline.Report{}
}

// happened returns the bridge's event of a type; nil if it does not exist.
func happened(report pipeline.Report, kind string) *pipeline.ReportEntry {
	for i := range report.Events {
		if report.Events[i].Module == compactionbridge.Name && report.Events[i].Type == kind {
			return &report.Events[i]
		}
	}
	return nil
}

// said returns what an answer says, read as the client's format has it.
func (c *compacting) said(got answer) wire.Answer {
	c.t.Helper()
	codec := map[string]wire.Codec{messagesPath: anthropic.Codec{}, responsesPath: openairesponses.Codec{}}[c.path]
	tap := codec.Tap(isStream(got.header.Get("Content-Type")))
	_, _ = tap.Write(got.body)
	return tap.Answer()
}

// textIn returns the text of an answer's one message.
func textIn(t *testing.T, said wire.Answer) string {
	t.Helper()
	if len(said.Messages) != 1 {
		t.Fatalf("%d messages: %+v", len(said.Messages), said)
	}
	var message struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(said.Messages[0], &message); err != nil || len(message.Content) != 1 {
		t.Fatalf("%v: %s", err, said.Messages[0])
	}
	return message.Content[0].Text
}

func TestClientCompactionIsAnsweredWithoutTheProvider(t *testing.T) {
	t.Parallel()
	for _, path := range []string{messagesPath, responsesPath} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream %t", path, streams), func(t *testing.T) {
				t.Parallel()
				c := setupCompacting(t, path, streams)
				before := len(c.double.Requests())
				got := c.compact("")
				if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Answered-From") != "compaction" || len(c.double.Requests()) != before {
					t.Fatalf("status %d, %d requests, %v: %.300s", got.status, len(c.double.Requests()), got.header, got.body)
				}
				said := c.said(got)
				text := textIn(t, said)
				for _, want := range []string{
					"Always run gofmt before you commit, and never touch the folder vendor/legacy.", "tombstone table instead of a flag",
					"Fine. Look at the failing test next.", "shop/part23.go", "recall_get with ", "(#50)",
				} {
					if !strings.Contains(text, want) {
						t.Errorf("the answer does not hold %q:\n%s", want, text)
					}
				}
				tagged := strings.HasPrefix(text, "<analysis>\n") && strings.Contains(text, "</analysis>\n\n<summary>\n") && strings.HasSuffix(text, "\n</summary>")
				if !said.Complete || tagged != (path == messagesPath) || streams != isStream(got.header.Get("Content-Type")) {
					t.Errorf("complete %t, tagged %t, %s", said.Complete, tagged, got.header.Get("Content-Type"))
				}
				if said.Usage.Prompt()+said.Usage.Output != 0 || got.header.Get("X-Palimpsest-Tokens-Saved") != "0" || got.header.Get("X-Palimpsest-Attempts") != "0" {
					t.Errorf("usage %+v, headers %v", said.Usage, got.header)
				}
				recorded, report := c.recorded(got, 3)
				hash := sha256.Sum256(said.Messages[0])
				if recorded.Cost.CostMicroUSD != 0 || recorded.Cost.NetMicroUSD != 0 || recorded.Tokens.Input+recorded.Tokens.CacheRead+recorded.Tokens.CacheWrite+recorded.Tokens.Output != 0 ||
					recorded.Prompt.TokensBefore == 0 || recorded.Prompt.TokensBefore != recorded.Prompt.TokensAfter || recorded.Request.Class != "compaction" || !bytes.Equal(recorded.Answer.Answer, hash[:]) {
					t.Errorf("recorded as %+v", recorded)
				}
				event := happened(report, compactionbridge.Answered)
				if event == nil || event.Counts[compactionbridge.SavedMicroUSD] <= 0 || event.Counts[compactionbridge.StandingOrders] == 0 ||
					event.Counts[compactionbridge.AnswerTokens] >= event.Counts[compactionbridge.HistoryTokens] || 2*event.Counts[compactionbridge.CoveredTokens] < event.Counts[compactionbridge.HistoryTokens] {
					t.Errorf("the event is %+v", event)
				}
				stored := c.memory.Originals(recorded.Request.Lane)
				if len(stored) != len(c.history)+1 || !strings.Contains(string(stored[len(stored)-1].Raw), strings.Trim(quoted(c.asks), `"`)) {
					t.Errorf("%d of %d messages are archived", len(stored), len(c.history)+1)
				}
				if again := c.compact(""); !bytes.Equal(again.body, got.body) {
					t.Errorf("the same request gets\n%s\nand before\n%s", again.body, got.body)
				}
			})
		}
	}
}

// What the client goes on with is known as its compaction, and bridged.
func TestSessionGoesOnFromAnAnsweredCompaction(t *testing.T) {
	t.Parallel()
	for _, path := range []string{messagesPath, responsesPath} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c := setupCompacting(t, path, true)
			text := textIn(t, c.said(c.compact("")))
			c.history = nil
			if path == messagesPath {
				_, summary, _ := strings.Cut(strings.TrimSuffix(text, "</summary>"), "<summary>\n")
				c.says("This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\nSummary:\n" + summary)
			} else {
				c.says("Another language model started to solve this problem and produced a summary of its thinking process. You also have access to the state of the tools that were used by that language model.\n" + text)
			}
			before := len(c.double.Requests())
			got := c.ask()
			if got.status != http.StatusOK || len(c.double.Requests()) != before+1 || got.header.Get("X-Palimpsest-Answered-From") != "" {
				t.Fatalf("status %d, %v: %.300s", got.status, got.header, got.body)
			}
			recorded, report := c.recorded(got, 4)
			event := happened(report, compactionbridge.Recovered)
			if recorded.Request.Class != "after-compaction" || event == nil {
				t.Fatalf("class %s: %+v", recorded.Request.Class, report)
			}
			if event.Counts[compactionbridge.OwnSummary] != 1 || event.Counts[compactionbridge.Directives] == 0 ||
				event.Counts[compactionbridge.DirectivesLost]+event.Counts[compactionbridge.DecisionsLost] != 0 || event.Counts[compactionbridge.FilesRestored] == 0 {
				t.Errorf("the bridge found %+v", event.Counts)
			}
		})
	}
}

// What Palimpsest cannot answer as well as a model goes to the provider as it came.
func TestOtherCompactionsArePassedOn(t *testing.T) {
	t.Parallel()
	instructed := strings.Replace(claudeAsks, "\n\n\nREMINDER", "\n\nAdditional Instructions:\nkeep file names\n\nREMINDER", 1)
	unnamed := strings.Replace(claudeAsks, "\n\n\nREMINDER", "\n\nKeep the file names.\n\nREMINDER", 1)
	for name, test := range map[string]struct {
		path    string
		change  func(c *compacting)
		members string
		header  []string
		reason  string // of the event; empty if it does not exist
	}{
		"setting":               {messagesPath, func(c *compacting) { c.configure("") }, "", nil, ""},
		"module is off":         {messagesPath, nil, "", []string{"X-Palimpsest-Pipe", "ipc"}, ""},
		"custom instructions":   {messagesPath, func(c *compacting) { c.asks = instructed }, "", nil, "the summary is to follow instructions"},
		"instructions of hooks": {messagesPath, func(c *compacting) { c.asks = unnamed }, "", nil, "the summary is to follow instructions"},
		"codex prompt replaced": {responsesPath, func(c *compacting) { c.asks += "Answer in French." }, "", nil, "the summary is to follow instructions"},
		"recent part only": {messagesPath, func(c *compacting) {
			c.asks = strings.Replace(c.asks, "of the conversation so far, paying close attention", "of the RECENT portion of the conversation", 1)
		}, "", nil, "the client's request for a summary is not one that is known"},
		"forced tool":     {messagesPath, nil, `,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`, nil, "the request asks for more than text"},
		"stop sequences":  {messagesPath, nil, `,"stop_sequences":["x"]`, nil, "the request asks for more than text"},
		"schema":          {responsesPath, nil, `,"text":{"format":{"type":"json_schema","name":"s","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false}}}`, nil, "the request asks for more than text"},
		"small answer":    {responsesPath, nil, `,"max_output_tokens":100`, nil, "the answer is longer than the request allows"},
		"bypassed":        {messagesPath, nil, "", []string{"X-Palimpsest-Bypass", "true"}, "the history must not be edited"},
		"nothing is kept": {messagesPath, nil, "", []string{"X-Palimpsest-No-Store", "true"}, ""},
		"dry run":         {messagesPath, nil, "", []string{"X-Palimpsest-Dry-Run", "true"}, ""},
		"other session":   {messagesPath, func(c *compacting) { c.header[3] = "22222222-2222-4333-8444-555555555555" }, "", nil, "no compaction of this history is ready"},
		"edited in front": {messagesPath, func(c *compacting) { c.history[4] = strings.Replace(c.history[4], "part1", "part9", 1) }, "", nil, "no compaction of this history is ready"},
		"edited behind": {messagesPath, func(c *compacting) {
			c.history[len(c.history)-2] = strings.Replace(c.history[len(c.history)-2], "Fine.", "Well.", 1)
		}, "", nil, "the history is not the one that was recorded"},
		"instructions in CLAUDE.md": {messagesPath, func(c *compacting) { c.rules = `\n\n# Rules\n\n## Compact Instructions\nKeep the figures.` }, "", nil, "the summary is to follow instructions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := setupCompacting(t, test.path, false)
			if test.change != nil {
				test.change(c)
			}
			before := len(c.double.Requests())
			got := c.compact(test.members, test.header...)
			if got.header.Get("X-Palimpsest-Answered-From") != "" || len(c.double.Requests()) != before+1 {
				t.Fatalf("status %d, %d requests: %.300s", got.status, len(c.double.Requests()), got.body)
			}
			if got.status != http.StatusOK {
				t.Errorf("the provider refuses it: %s", got.body)
			}
			_, report := c.recorded(got, 3)
			event := happened(report, compactionbridge.Passed)
			if test.reason == "" && event != nil || test.reason != "" && (event == nil || event.Reason != test.reason) {
				t.Errorf("the event is %+v, want %q: %+v", event, test.reason, report)
			}
		})
	}
}

// A session that was never compacted has nothing to be answered from, and one of Chat
// Completions no client whose request is known.
func TestCompactionOfAShortSessionIsPassedOn(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	c := &compacting{proxy: p, path: messagesPath, double: double, asks: claudeAsks, header: []string{"User-Agent", "claude-cli/2.1.330 (external, cli)"}}
	c.configure("compaction-bridge: {clientCompaction: answer}")
	c.says("Read a part.")
	c.calls(1, "cat a.go", "package a")
	c.asked()
	got := c.compact("")
	if got.header.Get("X-Palimpsest-Answered-From") != "" || got.status != http.StatusOK {
		t.Fatalf("status %d: %.300s", got.status, got.body)
	}
	_, report := c.recorded(got, 2)
	if event := happened(report, compactionbridge.Passed); event == nil || event.Reason != "no compaction of this history is ready" {
		t.Errorf("the event is %+v", event)
	}
	chat := fmt.Sprintf(`{"model":"gpt-5.5","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},{"role":"user","content":%s}]}`, quoted(codexAsks))
	if got = p.send(http.MethodPost, chatPath, chat); got.header.Get("X-Palimpsest-Answered-From") != "" || got.status != http.StatusOK {
		t.Fatalf("status %d: %.300s", got.status, got.body)
	}
	_, report = c.recorded(got, 3)
	if event := happened(report, compactionbridge.Passed); event == nil || event.Reason != "the format has no client whose request is known" {
		t.Errorf("the event is %+v", event)
	}
}

// A key that has spent its budget, or asked too often, is refused as with every request.
func TestLimitsHoldForAnsweredCompactions(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]tenants.Limits{
		"budget": {Quota: tenants.Quota{DayMicroUSD: 1}},
		"rate":   {Quota: tenants.Quota{RequestsPerMinute: 1}},
		"models": {Models: []string{"gpt-5.5"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := setupCompacting(t, messagesPath, false)
			c.last(2)
			c.store.limit(limit)
			if name == "rate" {
				if got := c.compact(""); got.status != http.StatusOK || got.header.Get("X-Palimpsest-Answered-From") == "" {
					t.Fatalf("the first is not answered: %d, %s", got.status, got.body)
				}
			}
			if got := c.compact(""); got.status < http.StatusBadRequest || got.header.Get("X-Palimpsest-Answered-From") != "" {
				t.Errorf("status %d: %s", got.status, got.body)
			}
		})
	}
}
