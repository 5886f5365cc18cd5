package client_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/wire/anthropic"
)

// W38, W43: requests beside the conversation, told by their texts alone.
func TestRequestsBesideTheConversationAreKnownByTheirText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		system   string
		messages []said
		kind     client.Kind
		client   string
	}{
		"claude code compacts":                  {"", append(tools("x"), assistant("done"), user(claudeAsks)), client.Compaction, client.ClaudeCode},
		"claude code compacts behind a text":    {"", append(tools("x"), assistant("done"), user("second\n", claudeAsks)), client.Compaction, client.ClaudeCode},
		"claude code compacts a long message":   {"", append(tools("x"), user(strings.Repeat("long ", 40_000), claudeAsks)), client.Compaction, client.ClaudeCode},
		"claude code compacts, older":           {"", append(tools("x"), user(claudeAskedOnce)), client.Compaction, client.ClaudeCode},
		"claude code compacts a second time":    {"", []said{user(continuedText), assistant("done"), user(claudeAsks)}, client.Compaction, client.ClaudeCode},
		"claude code's title":                   {"Generate a concise, sentence-case title (3-7 words) that captures the main topic.", []said{user("fix it")}, client.Title, client.ClaudeCode},
		"codex compacts":                        {"", append(tools("x"), user(codexAsks)), client.Compaction, client.Codex},
		"pi compacts":                           {piAsks, []said{user("<conversation>\n[User]: fix it\n</conversation>\n\nSummarize.")}, client.Compaction, client.Pi},
		"opencode compacts":                     {codeAsks, []said{user("Here is the conversation so far:\n\n<conversation>\n</conversation>")}, client.Compaction, client.OpenCode},
		"opencode's title":                      {codeTitle, []said{user("Generate a title for this conversation:\n"), user("fix it")}, client.Title, client.OpenCode},
		"cline compacts":                        {clineAsks, []said{user("Summarize this session for continuation. Be concise and factual.\n\n## Goal")}, client.Compaction, client.Cline},
		"roo compacts":                          {rooAsks, append(tools("x"), user("CRITICAL: This summarization request is a SYSTEM OPERATION, not a user message.\nYour task is to create a detailed summary.")), client.Compaction, client.Other},
		"roo compacts under its own system":     {rooSystem, append(tools("x"), user("CRITICAL: This summarization request is a SYSTEM OPERATION, not a user message.\nYour task is to create a detailed summary.")), client.Compaction, client.Roo},
		"copilot compacts":                      {copilotSystem, append(tools("x"), user(copilotAsks)), client.Compaction, client.Copilot},
		"qwen code compacts":                    {qwenSystem, append(tools("x"), user(qwenAsks)), client.Compaction, client.QwenCode},
		"qwen code compacts in other words":     {qwenAsks, append(tools("x"), user("First, reason in your <analysis> block. Then, produce the <state_snapshot> XML.")), client.Compaction, client.QwenCode},
		"qwen code remembers":                   {qwenMemory, append(tools("x"), assistant("done"), user("Managed memory has two directories."), assistant("I look."), result("notes")), client.Auxiliary, client.QwenCode},
		"continue compacts":                     {continueSystem, append(tools("x"), user(continueAsks)), client.Compaction, client.Continue},
		"droid compacts":                        {droidAsks, []said{user("Please summarize the following conversation:\n```\nUSER: fix it\n```")}, client.Compaction, client.Droid},
		"kilo's digest of a session":            {"You are Kilo's session digest updater.\n", []said{user("The session so far")}, client.Auxiliary, client.Kilo},
		"kilo's memory":                         {"You are Kilo's typed memory consolidation step.\n", []said{user("Notes")}, client.Auxiliary, client.Kilo},
		"a suggestion of what to type":          {"", append(tools("x"), assistant("done"), user(suggestion)), client.Auxiliary, client.Other},
		"a recap for who comes back":            {"", append(tools("x"), assistant("done"), user(recap)), client.Auxiliary, client.ClaudeCode},
		"a name for the session":                {"", append(tools("x"), assistant("done"), user(kebabName)), client.Title, client.ClaudeCode},
		"what an agent does":                    {"", append(tools("x"), assistant("done"), user(doingNow)), client.Auxiliary, client.ClaudeCode},
		"a question by the way":                 {"", append(tools("x"), assistant("done"), user(byTheWay, "What is a monad?")), client.SideReply, client.ClaudeCode},
		"what to remember":                      {"", append(tools("x"), assistant("done"), user(memories)), client.Auxiliary, client.ClaudeCode},
		"what to remember, looked up":           {claudeSystem, append(tools("x"), assistant("done"), user(memories), assistant("I look."), result("notes")), client.Auxiliary, client.ClaudeCode},
		"a person goes on after that":           {claudeSystem, append(tools("x"), user(memories), assistant("Saved."), user("now the lexer"), assistant("I look."), result("notes")), client.Main, client.ClaudeCode},
		"claude code's name for a session":      {"Generate a short kebab-case name (2-4 words) that captures the main topic of this conversation.", []said{user("<conversation>\nfix it\n</conversation>")}, client.Title, client.ClaudeCode},
		"claude code's title while it is typed": {"You are naming a coding session so the user can pick it out of a long list of sessions. The title", []said{user("<session>\nfix it\n</session>")}, client.Title, client.ClaudeCode},
		"pi's summarizer asked something else":  {piAsks, []said{user("hello")}, client.Main, client.Pi},
		"a title generator that is talked with": {codeTitle, []said{user("a"), assistant("b"), user("c")}, client.Main, client.OpenCode},
		"the words of claude code, cut short":   {"", []said{user("CRITICAL: Respond with TEXT ONLY. Do NOT call any tools. What is 2+2?")}, client.Unknown, client.Other},
		"the system prompt says it later":       {"Be brief. You are a title generator.", []said{user("a")}, client.Unknown, client.Other},
		"the last message is the model's":       {"", []said{user("x"), assistant(codexAsks)}, client.Unknown, client.Other},
	} {
		for _, codec := range codecs() {
			class := classify(t, codec, test.system, test.messages...)
			if class.Kind != test.kind || class.Client != test.client {
				t.Errorf("%s, %s: %+v", codec.Format(), name, class)
			}
			if side := class.IsSide(); side != (test.kind != client.Main && test.kind != client.Unknown) || side && class.First(client.Known{}) {
				t.Errorf("%s, %s: side %v, first %v", codec.Format(), name, side, class.First(client.Known{}))
			}
		}
	}
}

func TestClaudeCodeOutsideTheTextOfTheConversation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body  string
		kind  client.Kind
		agent bool
	}{
		"an agent by its billing block": {
			`{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cc_entrypoint=cli; cc_is_subagent=true;"},{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."}],"messages":[{"role":"user","content":"say hi"}]}`,
			client.Subagent, true,
		},
		"the main line": {
			`{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cc_entrypoint=cli;"}],"messages":[{"role":"user","content":"cc_is_subagent=true;"}]}`,
			client.Main, false,
		},
		"who watches over auto mode": {
			`{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1;"},{"type":"text","text":"You are a security monitor for autonomous AI coding agents.\n\n## Context"}],"messages":[{"role":"user","content":[{"type":"text","text":"<transcript>\n"},{"type":"text","text":"{\"Bash\":\"ls\"}\n</transcript>"}]}]}`,
			client.Auxiliary, false,
		},
		"a title behind billing and identity": {
			`{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1;"},{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."},{"type":"text","text":"Generate a concise, sentence-case title (3-7 words) that"}],"messages":[{"role":"user","content":"fix it"}]}`,
			client.Title, false,
		},
		"is the key good":     {`{"max_tokens":1,"messages":[{"role":"user","content":"quota"}]}`, client.Auxiliary, false},
		"a question of quota": {`{"max_tokens":1,"messages":[{"role":"user","content":"quota?"}]}`, client.Unknown, false},
		"a system message at the end": {
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"` + codexFlat + `"},{"role":"system","content":"x"}]}`,
			client.Compaction, false,
		},
	} {
		class := client.Classify(http.Header{}, "/v1/messages", open(t, anthropic.Codec{}, []byte(test.body)))
		if class.Kind != test.kind || class.Agent != test.agent {
			t.Errorf("%s: %+v", name, class)
		}
	}
}

const codexFlat = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM"

// W47: words that tell of a compaction, quoted anywhere, never count.
func TestQuotedWordsNeverCount(t *testing.T) {
	t.Parallel()
	words := []string{
		continuedText, continuedOld, claudeAsks, claudeAskedOnce, codexAsks, handover, piSummary, piBranch, codeGoOn, clineNotice, clineNote, crushGoesOn,
		copilotOver, copilotAsks, qwenAsks, qwenOver, qwenMemory, suggestion, recap, kebabName, doingNow, byTheWay, memories,
		piAsks, codeAsks, codeTitle, clineAsks, rooAsks, "What did we do so far?", "<command-name>/compact</command-name>", `{"type":"compaction_trigger"}`,
		"Context summary:\n\nThe parser.", "## Conversation Summary\nThe parser.", "cc_is_subagent=true;",
	}
	quotes := []func(string) string{
		func(w string) string { return "What does \"" + w + "\" mean?" },
		func(w string) string { return "```\n" + w + "\n```" },
		func(w string) string { return "> " + strings.ReplaceAll(w, "\n", "\n> ") },
		func(w string) string { return "In the log I read: " + w },
		func(w string) string { return "<b>" + w + "</b>" },
		func(w string) string { return "{\"text\":\"" + w },
	}
	places := []func(quoted, bare string) []said{
		func(quoted, _ string) []said { return []said{user(quoted)} },
		func(quoted, _ string) []said { return append(tools("ok"), assistant("done"), user(quoted)) },
		func(quoted, _ string) []said { return []said{user("look:", quoted)} },
		func(_, bare string) []said { return tools(bare) },
		func(_, bare string) []said { return append(tools(bare), assistant("done"), user("why?")) },
		func(_, bare string) []said {
			return []said{user("say it"), assistant("It is said so: " + bare), user("thanks")}
		},
		func(quoted, bare string) []said {
			return append([]said{user(quoted)}, append(tools(bare), assistant("It says "+bare), user(quoted))...)
		},
	}
	random := rand.New(rand.NewPCG(47, 47))
	for _, codec := range codecs() {
		for i, word := range words {
			for p, place := range places {
				for q, quote := range quotes {
					bare := word
					if random.IntN(2) == 0 {
						bare = fmt.Sprintf("line %d\n%s\n", random.IntN(99), word)
					}
					class := classify(t, codec, "You are a coding agent.", place(quote(word), bare)...)
					if class.Kind != client.Unknown || class.Marker.Found() || class.Trigger != "" || class.First(client.Known{}) {
						t.Errorf("%s: words %d at place %d in quote %d: %+v", codec.Format(), i, p, q, class)
					}
				}
			}
		}
	}
}
