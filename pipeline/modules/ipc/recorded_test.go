package ipc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
)

// recordedAt is where recorded sessions lie beside the product's repository.
const recordedAt = "../../../../shared/data/transcripts"

// A1, A2, A6, C2: whole recorded sessions, request by request, in a window of 40 %
// of their size.
func TestRecordedSessionsStayLegalAndStable(t *testing.T) {
	t.Parallel()
	for suffix, codec := range map[string]wire.Codec{"anthropic": anthropic.New(), "openai": openaichat.New()} {
		files, err := filepath.Glob(filepath.Join(recordedAt, "*."+suffix+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Skip("../shared is not here: no recorded sessions to replay")
		}
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				t.Parallel()
				body, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				replayRecorded(t, codec, body)
			})
		}
	}
}

func replayRecorded(t *testing.T, codec wire.Codec, body []byte) {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	double := providertest.NewHandler(providertest.Config{Window: 10_000_000})
	double.Trust(body)
	whole := pipelinetest.NewExchange(t, codec, body, pipelinetest.Options{Counter: counter})
	lane := pipelinetest.Lane{
		Codec: codec, Modules: []pipeline.Module{ipc.New(counter)},
		Options: pipelinetest.Options{Counter: counter, Config: pipeline.DefaultConfig(), Limit: whole.Size(nil) * 4 / 10},
	}
	over, epochs := 0, 0
	for i, request := range pipelinetest.Grow(t, codec, body) {
		exchange, sealed := lane.Send(t, request)
		if lane.Epochs > epochs || i%10 == 0 { // between epochs only the client's own end grows
			if err := double.Validate(string(codec.Format()), sealed); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		epochs = lane.Epochs
		if err := pipelinetest.CheckProjection(exchange); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if exchange.Report.After > exchange.Limit {
			over++
		}
		if exchange.Report.Archived > 0 || exchange.Report.Compression == pipeline.Unreachable {
			t.Logf("request %d: %s %d → %d of %d, levels %v, events %v", i, exchange.Report.Compression, exchange.Report.Before, exchange.Report.After, exchange.Limit, exchange.Report.Levels, exchange.Report.Events)
		}
	}
	t.Logf("%d epochs, limit %d, %d over", lane.Epochs, lane.Options.Limit, over)
	if over > 0 {
		t.Errorf("%d requests were over the window", over)
	}
}
