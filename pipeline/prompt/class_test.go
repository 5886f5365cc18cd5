package prompt_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
)

// W38, W43, W45: the session tells the first request after a compaction, and what
// is asked beside the conversation never becomes a part of it.
func TestRealRequestsFindTheirLanes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		format  conversation.Format
		classes string
		lanes   string // one letter a lane, in the order of their first request
	}{
		"claude-code/01-tool-turn":                 {conversation.Anthropic, "main,main", "a,a"},
		"claude-code/02-manual-compact":            {conversation.Anthropic, "main,main,main,compaction,after-compaction", "a,a,a,b,c"},
		"claude-code/05-prompt-too-long-reactive":  {conversation.Anthropic, "main,main,main,main,compaction,after-compaction,main", "a,a,a,a,b,c,c"},
		"claude-code/06-subagent":                  {conversation.Anthropic, "main,main,subagent,main", "a,a,b,a"},
		"claude-code/08-hint-headers-compact":      {conversation.Anthropic, "main,main,compaction,after-compaction", "a,a,b,c"},
		"claude-code/09-hint-headers-auto-compact": {conversation.Anthropic, "main,main,compaction,after-compaction,compaction,after-compaction", "a,a,b,c,d,e"},
		"opencode/01-basic":                        {conversation.Anthropic, "title,main,main", "a,b,b"},
		"opencode/02-autocompact-errors":           {conversation.Anthropic, "title,main,compaction", "a,b,c"},
		"codex/02-auto-compact":                    {conversation.OpenAIResponses, "main,compaction,after-compaction,compaction,after-compaction", "a,b,a,c,d"}, // its first items come again
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.format, 1_000_000)
			var classes, lanes []string
			letters := map[uuid.UUID]string{}
			sessions := map[uuid.UUID]bool{}
			for _, request := range pipelinetest.Captures(t, name) {
				if !strings.HasSuffix(request.Path, strings.TrimPrefix(paths()[test.format], "/v1")) {
					continue // the client speaks other formats too
				}
				written := b.capture(request)
				lane := written.Lane
				if letters[lane.ID] == "" {
					letters[lane.ID] = string(rune('a' + len(letters)))
				}
				class := written.Exchange.Class
				classes, lanes = append(classes, string(class.Kind)), append(lanes, letters[lane.ID])
				sessions[lane.Session] = true
				if (lane.Kind == session.Side) != class.IsSide() || (lane.Kind == session.Subagent) != (class.Kind == client.Subagent) {
					t.Errorf("a %s request is in a lane of kind %s", class.Kind, lane.Kind)
				}
			}
			if got := strings.Join(classes, ","); got != test.classes {
				t.Errorf("classes\n got %s\nwant %s", got, test.classes)
			}
			if got := strings.Join(lanes, ","); got != test.lanes {
				t.Errorf("lanes\n got %s\nwant %s", got, test.lanes)
			}
			if len(sessions) != 1 {
				t.Errorf("%d sessions, want one", len(sessions))
			}
		})
	}
}

func (b *bench) capture(request pipelinetest.Capture) *prompt.Prompt {
	b.t.Helper()
	written, err := b.writer.Write(b.t.Context(), prompt.Request{
		Scope: b.scope, Codec: b.codec, Config: b.config, Headers: request.HeaderWithout(), Path: request.Path, Body: request.Body,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return written
}

// E6: the client's own summary is made of what was said, not of what we made of it,
// unless that does not fit.
func TestClientsOwnCompactionPassesAsItWasSent(t *testing.T) {
	t.Parallel()
	ask := `{"role":"user","content":"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools. Tool calls will be rejected and you will fail the task.\n\nYour task is to create a detailed summary of the conversation so far.\n\nREMINDER: Do NOT call any tools."}`
	for _, test := range []struct {
		name   string
		window int
		edited bool
	}{{"fits", 40_000, false}, {"overflows", 14_000, true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, conversation.Anthropic, test.window)
			settings := pipeline.Change[ipc.Config](&b.config)
			settings.TargetUtilization, settings.CompressTo, settings.PreserveLastTurns = 0.3, 0.1, 2
			b.headers.Set("User-Agent", "claude-cli/2.1.329 (external, cli)")
			var messages []string
			for i := range 40 {
				messages = append(messages, fmt.Sprintf(`{"role":"user","content":"question %d %s"}`, i, strings.Repeat("about the parser ", 60)))
				if i < 39 {
					messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":"answer %d %s"}`, i, strings.Repeat("in the lexer ", 60)))
				}
			}
			body := func(list []string) []byte {
				return []byte(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[` + strings.Join(list, ",") + `]}`)
			}
			if before := b.send(body(messages)); before.Exchange.Lane.Projection == nil {
				t.Fatal("the session was not compressed before")
			}
			asking := body(append(slices.Clone(messages), `{"role":"assistant","content":"done"}`, ask))
			written := b.send(asking)
			if written.Exchange.Class.Kind != client.Compaction {
				t.Fatalf("class %+v", written.Exchange.Class)
			}
			if edited := string(written.Body) != string(asking); edited != test.edited {
				t.Errorf("edited: %t, want %t; report %+v", edited, test.edited, written.Exchange.Report)
			}
			after := b.send(body(append(slices.Clone(messages), `{"role":"assistant","content":"done"}`, `{"role":"user","content":"go on"}`)))
			if after.Exchange.Lane.Projection == nil || after.Lane.Kind != session.Main {
				t.Errorf("afterwards the conversation has lane kind %s and projection %v", after.Lane.Kind, after.Exchange.Lane.Projection)
			}
		})
	}
}

// W38: what Claude Code asks beside the conversation while a person sits before it neither
// splits the conversation nor is it shortened for it; the prompt is the conversation's.
func TestQuestionsOnTheSideLeaveTheConversationInItsLane(t *testing.T) {
	t.Parallel()
	const (
		suggestion = "[SUGGESTION MODE: Suggest what the user might naturally type next into Claude Code.]\n\nReply with ONLY the suggestion, no quotes or explanation."
		memories   = "You are now acting as the memory extraction subagent. Analyze the most recent ~6 messages above and use them to update your persistent memory systems."
		byTheWay   = "<system-reminder>This is a side question from the user. You must answer this question directly in a single response.</system-reminder>"
	)
	b := newBench(t, conversation.Anthropic, 40_000)
	b.headers.Set("User-Agent", "claude-cli/2.1.332 (external, cli)")
	b.headers.Set("X-Claude-Code-Session-Id", "8e3a6f4e-0001-4000-8000-000000000001")
	talked := begun("claude-sonnet-4-5").filled(30, 1_000)
	first := b.epoch(talked.body())
	prefix := b.elements(first.Body)
	prefix = prefix[:len(prefix)-1]

	for turn, aside := range []struct {
		name string
		asks []string
	}{
		{"suggestion", []string{said(suggestion)}},
		{"by the way", []string{said(byTheWay), said("What is a monad?")}},
		{"memories", []string{said(memories)}},
	} {
		name := aside.name
		talked.assistant(said(fmt.Sprintf("Answer %d.", turn)))
		beside := &talk{head: talked.head, messages: slices.Clone(talked.messages)}
		asked := b.send(beside.user(aside.asks...).body())
		if asked.Lane.Kind != session.Side || asked.Lane.ID == first.Lane.ID || asked.Lane.Session != first.Lane.Session {
			t.Errorf("%s: lane kind %s, class %+v", name, asked.Lane.Kind, asked.Exchange.Class)
		}
		if name == "memories" {
			again := b.send(beside.assistant(call("toolu_m")).user(result("toolu_m", quoted("notes"))).body())
			if again.Lane.ID != asked.Lane.ID {
				t.Errorf("the errand went on in another lane of kind %s, class %+v", again.Lane.Kind, again.Exchange.Class)
			}
		}
		next := b.send(talked.user(said(fmt.Sprintf("Question %d.", turn+1))).body())
		if next.Lane.ID != first.Lane.ID || next.Exchange.Lane.Projection == nil || next.Exchange.Lane.Projection.Number != first.Exchange.Lane.Projection.Number {
			t.Errorf("after %s the conversation goes on in lane %s of kind %s, class %+v", name, next.Lane.ID, next.Lane.Kind, next.Exchange.Class)
		}
		for _, sent := range []*prompt.Prompt{asked, next} {
			if got := b.elements(sent.Body); len(got) < len(prefix) || !slices.EqualFunc(got[:len(prefix)], prefix, bytes.Equal) {
				t.Errorf("%s: the prompt begins otherwise than that of the conversation", name)
			}
		}
	}
}

// A call on the side comes once, and reads what the provider has cached of the conversation: to
// shorten it would cost more than it saves, unless it does not fit.
func TestCallsOnTheSideAreShortenedOnlyIfTheyDoNotFit(t *testing.T) {
	t.Parallel()
	const suggestion = "[SUGGESTION MODE: Suggest what the user might naturally type next]\n\nReply with ONLY the suggestion, no quotes or explanation.\n"
	for _, test := range []struct {
		tokens int
		epoch  bool
	}{{8_000, false}, {22_000, true}} {
		b := newBench(t, conversation.Anthropic, 40_000)
		settings := pipeline.Change[ipc.Config](&b.config)
		settings.TargetUtilization, settings.CompressTo = 0.5, 0.25
		talked := begun("claude-sonnet-4-5").filled(9, 1_000)
		if before := b.send(talked.body()); before.Exchange.Report.Archived > 0 {
			t.Fatalf("compressed below its target: %+v", before.Exchange.Report)
		}
		talked.assistant(said("Done."))
		beside := &talk{head: talked.head, messages: slices.Clone(talked.messages)}
		asked := b.send(beside.user(said(suggestion + words(test.tokens))).body())
		if asked.Lane.Kind != session.Side || asked.Exchange.Report.Archived > 0 != test.epoch {
			t.Errorf("%d tokens: lane kind %s, report %+v", test.tokens, asked.Lane.Kind, asked.Exchange.Report)
		}
		if turn := b.send(talked.user(said(words(test.tokens))).body()); turn.Exchange.Report.Archived == 0 {
			t.Errorf("a turn of %d tokens was not shortened: %+v", test.tokens, turn.Exchange.Report)
		}
	}
}
