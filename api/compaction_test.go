package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// E14: a provider that compacts the history by itself goes on record as such, with what it
// replaced in the archive and what it cost on the bill, and its answer goes back as it is.
func TestAProvidersOwnCompactionGoesOnRecord(t *testing.T) {
	t.Parallel()
	const words = 2500 // 30 results of so many are more than 50,000 tokens
	with := func(body, members string) string { return "{" + members + "," + body[1:] }
	anthropic := toolSession("claude-opus-4-6", 30, words)
	responses := responsesSession(words)
	for _, test := range []struct {
		name, path, body, beta string
		block                  string // what the answer has of it
		beside                 bool   // the answer's own usage leaves out what the compaction took
	}{
		{"on the way", messagesPath, with(anthropic, `"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]}`), "compact-2026-01-12", `"type":"compaction"`, true},
		{"on the way, and pauses", messagesPath, with(anthropic, `"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000},"pause_after_compaction":true}]}`), "compact-2026-01-12", `"stop_reason":"compaction"`, true},
		{"on demand", messagesPath, with(anthropic, `"compaction":{"type":"summarize"}`), "compact-2026-09-04", `"type":"compaction"`, false},
		{"at a threshold", responsesPath, with(responses, `"context_management":[{"type":"compaction","compact_threshold":1000}]`), "", `"type":"compaction"`, false},
		{"by an item", responsesPath, strings.Replace(responses, `]}`, `,{"type":"compaction_trigger"}]}`, 1), "", `"type":"compaction"`, false},
	} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", test.name, streams), func(t *testing.T) {
				t.Parallel()
				double := providertest.NewServer(t, providerdouble.Config{})
				p := setupAt(t, double.URL)
				body := test.body
				if streams {
					body = with(body, `"stream":true`)
				}
				got := p.send(http.MethodPost, test.path, body, "Anthropic-Version", "2023-06-01", "Anthropic-Beta", test.beta)
				if got.status != http.StatusOK || !strings.Contains(string(got.body), test.block) {
					t.Fatalf("status %d: %.600s", got.status, got.body)
				}
				recorded := p.last(1)
				event := compactionOf(t, recorded)
				if event == nil || !recorded.Prompt.Compacted {
					t.Fatalf("not on record: %s", recorded.Prompt.Report)
				}
				price := p.Prompts.Models.Lookup(recorded.Request.Model).Price
				whole := price.MicroUSD(recorded.Tokens.Input, recorded.Tokens.CacheRead, recorded.Tokens.CacheWrite, 0, recorded.Tokens.Output)
				if off := recorded.Cost.CostMicroUSD - whole; off < -2 || off > 2 || test.beside != (event.Counts["input_tokens"] > 50_000) {
					t.Errorf("%d microdollars are recorded, the tokens cost %d: %+v", recorded.Cost.CostMicroUSD, whole, event.Counts)
				}
				if read := recorded.Tokens.Input + recorded.Tokens.CacheRead + recorded.Tokens.CacheWrite; test.beside && read < event.Counts["input_tokens"] {
					t.Errorf("%d tokens are recorded, the compaction alone read %+v", read, event.Counts)
				}
				if stored := p.memory.Originals(recorded.Request.Lane); len(stored) != event.Counts["messages"] || event.Counts["messages"] != recorded.Request.Position {
					t.Errorf("%d of %d messages are in the archive", len(stored), recorded.Request.Position)
				}
			})
		}
	}
}

// An answer of a history that nobody compacted says nothing of it.
func TestAnAnswerWithoutACompactionIsNoCompaction(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	body := `{"context_management":{"edits":[{"type":"compact_20260112"}]},` + toolSession("claude-opus-4-6", 3, 10)[1:]
	if got := p.send(http.MethodPost, messagesPath, body, "Anthropic-Version", "2023-06-01", "Anthropic-Beta", "compact-2026-01-12"); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if recorded := p.last(1); recorded.Prompt.Compacted || compactionOf(t, recorded) != nil {
		t.Errorf("on record: %s", recorded.Prompt.Report)
	}
}

func compactionOf(t *testing.T, exchange tenants.Exchange) *pipeline.ReportEntry {
	t.Helper()
	var report pipeline.Report
	if err := json.Unmarshal(exchange.Prompt.Report, &report); err != nil {
		t.Fatal(err)
	}
	return report.Compacted()
}
