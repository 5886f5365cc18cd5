package ipc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
)

// A1, A2, A6, C2: whole recorded sessions, request by request, in a window of 40 %
// of their size.
func TestRecordedSessionsStayLegalAndStable(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	for _, run := range []struct {
		suffix string
		codec  wire.Codec
		change func(t *testing.T, body []byte) []byte
	}{
		{"anthropic", anthropic.New(), func(_ *testing.T, body []byte) []byte { return body }},
		{"anthropic", anthropic.New(), withNotices},
		{"openai", openaichat.New(), func(_ *testing.T, body []byte) []byte { return body }},
	} {
		files := sharedtest.Files(t, "data/transcripts/*."+run.suffix+".json")
		for i := range fulltest.Part(len(files)) {
			file := files[i]
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				t.Parallel()
				body, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				replayRecorded(t, counter, run.codec, run.change(t, body))
			})
		}
	}
}

// withNotices returns a recorded session as Claude Code sends it to its newest models.
func withNotices(t *testing.T, body []byte) []byte {
	t.Helper()
	changed, err := pipelinetest.WithNotices(body)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func replayRecorded(t *testing.T, counter *tokens.Counter, codec wire.Codec, body []byte) {
	t.Helper()
	double := providerdouble.NewHandler(providerdouble.Config{Window: 10_000_000})
	double.Trust(body)
	whole := pipelinetest.NewExchange(t, codec, body, pipelinetest.Options{Counter: counter})
	lane := pipelinetest.Lane{
		Codec: codec, Modules: []pipeline.Module{ipc.New(counter.Message)},
		Options: pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default(), Limit: whole.Size(nil) * 4 / 10},
	}
	var before sent
	for i, request := range pipelinetest.Grow(t, codec, body) {
		if i%3 > 0 {
			continue // a session that grows by three answers a request shows as much in a third of the time
		}
		exchange, sealed := lane.Send(t, request)
		if lane.Epochs > before.epochs || i%24 == 0 { // between epochs only the client's own end grows
			if err := double.Validate(string(codec.Format()), sealed); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		elements := elementsOf(t, codec, sealed)
		before.hold(t, codec, lane.Epochs, elements)
		checkUntouched(t, exchange, elements)
		before = sent{elements, lane.Epochs}
		if err := pipelinetest.CheckProjection(exchange); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		// One turn alone is what the client asks for now: nothing of it may go.
		if exchange.Report.After > exchange.Limits.Limit && len(exchange.Conversation.Turns) > 1 {
			t.Errorf("request %d has %d of %d", i, exchange.Report.After, exchange.Limits.Limit)
		}
	}
	if lane.Epochs == 0 || lane.Epochs > 8 {
		t.Errorf("%d epochs", lane.Epochs)
	}
}

// A16: the tools that Claude Code has looked up stay known to the model, compaction after compaction.
func TestRecordedToolReferencesSurviveCompactions(t *testing.T) {
	t.Parallel()
	file := sharedtest.Files(t, "data/clients/2026-11/claude-code-2.1.332/v1-messages--tool_reference/body.json")[0]
	indented, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	var body struct{ Messages json.RawMessage }
	if err := errors.Join(json.Compact(&whole, indented), json.Unmarshal(whole.Bytes(), &body)); err != nil {
		t.Fatal(err)
	}
	recorded := strings.TrimSuffix(string(body.Messages), "]")
	references := regexp.MustCompile(`\{"type":"tool_result","tool_use_id":"[^"]*","content":\[(?:\{"type":"tool_reference"[^{}]*\},?)+\]\}`).FindAllString(recorded, -1)
	if len(references) == 0 {
		t.Fatal("no tool is looked up in the recorded session")
	}
	lane, epochs, more := newLane(t, 70_000), 0, new(strings.Builder)
	for i := range 48 {
		fmt.Fprintf(more, `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_more%d","name":"Bash","input":{"command":"make %d"}}]}`, i, i)
		fmt.Fprintf(more, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_more%d","content":%s}]}`, i, quoted(words(2_000)))
		if i%6 > 0 {
			continue
		}
		exchange, sealed := send(t, lane, bytes.Replace(whole.Bytes(), body.Messages, []byte(recorded+more.String()+"]"), 1))
		holds(t, sealed, references...)
		if exchange.Report.Compression == pipeline.Epoch {
			epochs++
		}
	}
	if epochs < 2 {
		t.Errorf("%d compactions, want several", epochs)
	}
}
