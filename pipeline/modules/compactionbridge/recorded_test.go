package compactionbridge_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// shared returns a path of the recorded requests; without them the test is skipped.
func shared(t *testing.T, parts ...string) string {
	t.Helper()
	found := filepath.Join(append([]string{"..", "..", "..", "..", "shared", "data"}, parts...)...)
	if _, err := os.Stat(found); err != nil {
		t.Skip("no ../shared/data beside the repository: recorded requests are not read")
	}
	return found
}

// captures returns the requests of a real client, in order.
func captures(t *testing.T, name, path string) []pipelinetest.Capture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shared(t, "clients"), filepath.FromSlash(name), "*-POST-*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures of %s: %v", name, err)
	}
	var all []pipelinetest.Capture
	for _, file := range files {
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

// W43, W44, E8: the compactions of real clients are bridged behind the summary, once,
// and what was put there is the same in every request after it.
func TestCapturedCompactionsAreBridgedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		codec wire.Codec
		path  string
		fires int // request that is the first after the compaction, from 1 on; 0: none
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
		"pi/01-basic-compact":                      {openaichat.New(), "/completions", 0}, // it names no session
		"opencode/02-autocompact-errors":           {anthropic.New(), "/messages", 0},
		"opencode/01-basic":                        {anthropic.New(), "/messages", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, test.codec)
			fired := map[int]string{}
			for i, request := range captures(t, name, test.path) {
				written := k.send(t, request.HeaderWithout(), request.Path, ordered(request.Body))
				if event := recovered(written); event != nil {
					fired[i+1] = blockIn(written)
					checkBehindSummary(t, written)
				}
				t.Logf("%d: %s %+v", i+1, written.Exchange.Class.Kind, written.Exchange.Report.Events)
				for at, block := range fired {
					if at < i+1 && !written.Exchange.Class.IsSide() && written.Exchange.Class.Kind != client.AfterCompaction &&
						strings.Count(string(written.Body), "recovered context, not a new request") != 1 {
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
	for _, mark := range []string{"This session is being continued", "Another language model"} {
		if bytes.Contains(body, []byte(mark)) {
			return body
		}
	}
	for _, words := range []string{"Read a.txt and tell me", "first", "hello"} {
		if bytes.Contains(body, []byte(words)) {
			return bytes.ReplaceAll(body, []byte(words), []byte(words+". Always answer in rhymes."))
		}
	}
	return body
}

// checkBehindSummary checks that a block stands at or behind the client's summary.
func checkBehindSummary(t *testing.T, written *prompt.Prompt) {
	t.Helper()
	insert := written.Exchange.Injected(compactionbridge.Name)[0]
	if boundary := written.Exchange.Class.Marker.Boundary; insert.Message < boundary {
		t.Errorf("the block stands at message %d, the summary at %d", insert.Message, boundary)
	}
	if written.Exchange.Digests[insert.Message].Role != conversation.User {
		t.Error("the block does not stand in a message of the user")
	}
}

// detected counts requests of a kind and those at which the module fired.
type detected struct{ requests, fired int }

// E8: of the labelled requests, each sent into a session that is known, all real
// continuations are bridged and none of the others.
func TestLabelledContinuationsAreBridgedAndNothingElse(t *testing.T) {
	t.Parallel()
	file, err := os.Open(shared(t, "bridge", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	counts, once := map[string]detected{}, counter(t)
	reader := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) == 0 && err != nil {
			break
		}
		var row struct {
			ID     string          `json:"id"`
			Client string          `json:"client"`
			Label  string          `json:"label"`
			Real   bool            `json:"real"`
			Body   json.RawMessage `json:"body"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		for name, header := range map[string]http.Header{"its client": {"User-Agent": {"claude-cli/2.1.329"}}, "an unknown client": {}} {
			if !row.Real {
				header = http.Header{}
			}
			header = header.Clone()
			if row.Label == "normal" && name != "its client" {
				continue // its first request is a fresh one
			}
			header.Set("X-Palimpsest-Session-Id", row.ID)
			label := row.Label + " as " + name
			if !row.Real {
				label = row.Label + ", template as " + name
			}
			count := counts[label]
			count.requests++
			if firesAt(t, once, header, row.Label, row.Body) {
				count.fired++
			}
			if fired := count.fired > counts[label].fired; fired != (row.Label == "continuation") {
				t.Errorf("%s (%s, %s): fired %v", row.ID, row.Client, label, fired)
			}
			counts[label] = count
		}
	}
	for label, count := range counts {
		t.Logf("%s: %d requests, fired at %d", label, count.requests, count.fired)
	}
}

// firesAt reports whether the module fires at a request that follows work in the
// same session. One that carries a conversation on follows its own beginning.
func firesAt(t *testing.T, once *tokens.Counter, header http.Header, label string, request []byte) bool {
	t.Helper()
	k := newTalkWith(t, anthropic.New(), once)
	k.send(t, header, path, body(t, worked()...))
	if label == "normal" {
		envelope, err := wire.Open(request, "messages")
		if err != nil {
			t.Fatal(err)
		}
		// Where its client may have compacted.
		k.send(t, header, path, envelope.Seal([]wire.Piece{{From: 0, To: 1}, {From: 1, To: envelope.Len(), Raw: json.RawMessage{}}}))
	}
	return recovered(k.send(t, header, path, request)) != nil
}
