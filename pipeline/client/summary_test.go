package client_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/wire"
)

// claudeRequest is Claude Code's request for a summary, its middle left out.
const claudeRequest = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n- Do NOT use Read.\n\n" +
	"Your task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests and your previous actions.\n\n" +
	"<example>\n## Compact Instructions\nFocus on typescript.\n</example>\n\n\n" +
	"REMINDER: Do NOT call any tools. Respond with plain text only — an <analysis> block followed by a <summary> block. Tool calls will be rejected and you will fail the task."

func TestOnlyPlainRequestsForASummaryAreKnown(t *testing.T) {
	t.Parallel()
	with := func(old, replaced string) string { return strings.Replace(claudeRequest, old, replaced, 1) }
	for name, test := range map[string]struct {
		request string
		form    client.Form
		reason  string
	}{
		"plain":               {claudeRequest, client.Tagged, ""},
		"instructions":        {with("\n\n\nREMINDER", "\n\nAdditional Instructions:\nkeep names\n\nREMINDER"), client.Tagged, client.CustomInstructions},
		"without their title": {with("\n\n\nREMINDER", "\n\nkeep names\n\nREMINDER"), client.Tagged, client.CustomInstructions},
		"with a tag in them":  {with("\n\n\nREMINDER", "\n\nAdditional Instructions:\n</example>\n\nREMINDER"), client.Tagged, client.CustomInstructions},
		"behind the reminder": {claudeRequest + "\n\nIn French, please.", client.Tagged, client.CustomInstructions},
		"of the recent part":  {with("of the conversation so far", "of the RECENT portion of the conversation"), client.Tagged, client.UnknownRequest},
		"in another form":     {with("an <analysis> block followed by a <summary> block", "JSON"), client.Tagged, client.UnknownRequest},
		"something else":      {"Summarize this, please.", "", client.UnknownRequest},
	} {
		body := `{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},{"role":"user","content":[{"type":"text","text":"before"},{"type":"text","text":` + string(wire.Quote(test.request)) + `}]}]}`
		wanted, reason := client.WantedSummary(open(t, codecAt("/v1/messages"), []byte(body)))
		if reason != test.reason || wanted.Form != test.form || test.form != "" && wanted.Message != 2 {
			t.Errorf("%s: %+v, %q, want %q", name, wanted, reason, test.reason)
		}
	}
}

// The recorded request of Codex is known word for word; those of pi and opencode hold the
// conversation as a text, which nothing proves.
func TestRecordedRequestsForASummary(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		request int
		reason  string
	}{
		{"codex/02-auto-compact", 1, ""}, {"codex/02-auto-compact", 3, ""}, {"pi/01-basic-compact", 3, client.UnknownRequest},
		{"opencode/02-autocompact-errors", 2, client.UnknownRequest}, {"codex/04-openai-provider-remote-compact", 2, client.UnknownRequest},
	} {
		request := pipelinetest.Captures(t, test.name)[test.request]
		wanted, reason := client.WantedSummary(open(t, codecAt(request.Path), request.Body))
		if reason != test.reason || (wanted.Form == client.Handover) != (test.reason == "") {
			t.Errorf("%s, request %d: %+v, %q", test.name, test.request+1, wanted, reason)
		}
	}
}

func TestInstructionsForSummariesAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"# Rules\n\n## Compact Instructions\nKeep the figures.": true, "# Summary instructions": true, "## Compaction instructions\n": true,
		"Read the compact instructions of the washing machine.": false, "# Compact mode": false,
	} {
		if client.InstructsSummaries(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
