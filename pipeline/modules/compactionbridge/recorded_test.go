package compactionbridge_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"palimpsest/cmd/tools/memorybench"
	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// captures returns the requests of a real client, in order.
func captures(t *testing.T, name, path string) []pipelinetest.Capture {
	t.Helper()
	var all []pipelinetest.Capture
	for _, file := range sharedtest.Files(t, "data/clients/"+name+"/*-POST-*.json") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var one pipelinetest.Capture
		if err := json.Unmarshal(raw, &one); err != nil {
			t.Fatal(err)
		}
		if one.Path, _, _ = strings.Cut(one.Path, "?"); strings.HasSuffix(one.Path, path) {
			all = append(all, one)
		}
	}
	return all
}

// W43, W44, E8: the compactions of real clients are bridged behind the summary, once, in
// the newest message of the user, and what was put there is the same in every request
// after it.
func TestCapturedCompactionsAreBridgedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		codec wire.Codec
		path  string
		fires int // request that is the first after the compaction, from 1 on; 0 if none
	}{
		"claude-code/02-manual-compact":            {anthropic.New(), "/messages", 5},
		"claude-code/03-auto-compact":              {anthropic.New(), "/messages", 4},
		"claude-code/05-prompt-too-long-reactive":  {anthropic.New(), "/messages", 6},
		"claude-code/08-hint-headers-compact":      {anthropic.New(), "/messages", 4},
		"claude-code/09-hint-headers-auto-compact": {anthropic.New(), "/messages", 4},
		"claude-code/01-tool-turn":                 {anthropic.New(), "/messages", 0},
		"claude-code/06-subagent":                  {anthropic.New(), "/messages", 0},
		"codex/02-auto-compact":                    {openairesponses.New(), "/responses", 3},
		"codex/04-openai-provider-remote-compact":  {openairesponses.New(), "/responses", 0},
		"pi/01-basic-compact":                      {openaichat.New(), "/completions", 5}, // it names no session, and keeps its tail
		"opencode/02-autocompact-errors":           {anthropic.New(), "/messages", 0},
		"opencode/01-basic":                        {anthropic.New(), "/messages", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, test.codec)
			pipeline.Change[compactionbridge.Config](&k.config).Scope = pipeline.ScopePerson // as setup offers it for such clients
			fired := map[int]string{}
			for i, request := range captures(t, name, test.path) {
				written := k.send(t, request.HeaderWithout(), request.Path, ordered(request.Body))
				if event := recovered(written); event != nil {
					fired[i+1] = blockIn(written)
					checkBehindSummary(t, written, fired[i+1])
				}
				t.Logf("%d: %s %+v", i+1, written.Exchange.Class.Kind, written.Exchange.Report.Events)
				for at, block := range fired {
					if at < i+1 && !written.Exchange.Class.IsSide() && written.Exchange.Class.Kind != client.AfterCompaction &&
						(strings.Count(string(written.Body), "recovered context, not a new request") != 1 || !bytes.Contains(written.Body, inJSON(block))) {
						t.Errorf("request %d does not hold the block of request %d once:\n%s", i+1, at, block)
					}
				}
			}
			if test.fires == 0 && len(fired) > 0 || test.fires > 0 && fired[test.fires] == "" {
				t.Errorf("it fired at %v, want %d", fired, test.fires)
			}
		})
	}
}

// ordered puts an order of the person's into a body: the captures hold none.
func ordered(body []byte) []byte {
	if summaryIn(body) >= 0 {
		return body
	}
	for _, words := range []string{"Read a.txt and tell me", "first", "hello"} {
		if bytes.Contains(body, []byte(words)) {
			return bytes.ReplaceAll(body, []byte(words), []byte(words+". Always answer in rhymes."))
		}
	}
	return body
}

// summaryIn returns where a client's summary begins in a body; -1: it holds none.
func summaryIn(body []byte) int {
	for _, mark := range []string{"This session is being continued", "Another language model", "The conversation history before this point"} {
		if at := bytes.Index(body, []byte(mark)); at >= 0 {
			return at
		}
	}
	return -1
}

// inJSON returns a text as it stands within a string.
func inJSON(text string) []byte { return bytes.Trim(wire.Quote(text), `"`) }

// checkBehindSummary checks that a block stands behind the client's summary, in the
// newest message of the user.
func checkBehindSummary(t *testing.T, written *prompt.Prompt, block string) {
	t.Helper()
	insert, digests := written.Exchange.Injected(compactionbridge.Name)[0], written.Exchange.Conversation.Digests
	if boundary := written.Exchange.Class.Marker.Boundary; insert.Message < boundary {
		t.Errorf("the block stands at message %d, the summary at %d", insert.Message, boundary)
	}
	for i := insert.Message; i < len(digests); i++ {
		if (digests[i].Role == conversation.User) != (i == insert.Message) {
			t.Errorf("the block stands at message %d, and message %d is of the %s", insert.Message, i, digests[i].Role)
		}
	}
	if summary, at := summaryIn(written.Body), bytes.Index(written.Body, inJSON(block)); summary < 0 || at < summary {
		t.Errorf("the block stands at byte %d, the summary at %d", at, summary)
	}
}

// E8: of the labeled requests, each sent into a session that is known, all real
// continuations are bridged and none of the others.
func TestLabeledContinuationsAreBridgedAndNothingElse(t *testing.T) {
	t.Parallel()
	requests, err := memorybench.LoadLabeled(sharedtest.Path(t, "data", "bridge", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	figures, err := memorybench.Detection(t.Context(), counter(t), requests)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + memorybench.Figures(figures))
	for i := range figures {
		if figure := &figures[i]; !figure.Reached() {
			t.Errorf("%s: fired at %d of %d: %s", figure.Name, figure.Met, figure.Cases, strings.Join(figure.Others, ", "))
		}
	}
}

// E8: of what real sessions read again within 30 calls of a compaction, most is of
// files whose content the block already holds.
func TestMostOfWhatIsReadAgainIsThereAlready(t *testing.T) {
	t.Parallel()
	found, missing, err := memorybench.LoadCompactions(sharedtest.Path(t, "data"))
	if err != nil {
		t.Fatal(err)
	}
	count := counter(t)
	var rows []memorybench.Carried
	for _, maxTokens := range []int{3000, 6000, 12000} {
		row, err := memorybench.Carry(t.Context(), count, found, maxTokens)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
		if row.Largest > maxTokens {
			t.Errorf("a block has %d tokens, at most %d are allowed", row.Largest, maxTokens)
		}
		share := func(part int) float64 { return float64(part) / float64(max(row.Rereads, 1)) }
		if maxTokens == 6000 && (share(row.Files) < memorybench.LeastFiles || share(row.Half) < memorybench.LeastHalf) {
			t.Errorf("within 6000 tokens the block holds content of %.2f of what is read again, half of the lines of %.2f", share(row.Files), share(row.Half))
		}
	}
	t.Logf("%d re-reads are of sessions that are not there\n%s", missing, memorybench.Rereads(rows))
}
