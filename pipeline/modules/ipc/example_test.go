package ipc_test

import (
	"context"
	"fmt"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/anthropic"
)

// A conversation in which an assistant reads one file after the other, in a window of 8,000
// tokens: the worked example of the package's documentation.
func Example() {
	err := workThrough(func(turns int, report pipeline.Report) {
		fmt.Printf("request %d: %s, %d → %d tokens, turns at L0 to L3: %v\n", turns, report.Compression, report.Before, report.After, report.Levels)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// request 1: none, 331 → 331 tokens, turns at L0 to L3: [1 0 0 0]
	// request 19: epoch, 6055 → 1947 tokens, turns at L0 to L3: [4 1 14 0]
	// request 32: epoch, 10189 → 1950 tokens, turns at L0 to L3: [3 1 18 10]
	// request 45: epoch, 14323 → 1934 tokens, turns at L0 to L3: [3 1 18 23]
	// request 58: epoch, 18457 → 1958 tokens, turns at L0 to L3: [3 0 19 36]
}

// workThrough runs the worked example and reports its first request and its compactions.
func workThrough(show func(turns int, report pipeline.Report)) error {
	counter, err := tokens.NewCounter()
	if err != nil {
		return err
	}
	config := modules.Catalog().Default()
	config.Modules = []string{ipc.Name}
	settings := pipeline.Change[ipc.Config](&config)
	settings.TargetUtilization, settings.CompressTo = 0.75, 0.25
	settings.PreserveLastTurns, settings.PreserveTokens = 2, 0
	options := pipelinetest.Options{Counter: counter, Config: config, Limit: 8000}
	options.Commit = func(_ context.Context, projection session.Projection) error {
		options.Projection = &projection // the lane's from now on
		return nil
	}
	chain := pipeline.NewChain(ipc.New(counter.Message))
	for turns := 1; turns <= 60; turns++ {
		exchange, err := pipelinetest.ReadExchange(anthropic.New(), reading(turns), options)
		if err != nil {
			return err
		}
		chain.Process(context.Background(), exchange)
		report := exchange.Report
		if turns == 1 || report.Compression == pipeline.Epoch {
			show(turns, report)
		}
	}
	return nil
}

// reading returns the body of the request with so many calls behind it.
func reading(calls int) []byte {
	messages := []string{`{"role":"user","content":"Find out why the build is slow."}`}
	for i := range calls {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"I look at step %d."},{"type":"tool_use","id":"call_%d","name":"Read","input":{"file_path":"/build/step%d.log"}}]}`, i, i, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%d","content":"%s"}]}`, i, strings.Repeat(fmt.Sprintf("Step %d compiled another package in a few seconds. ", i), 25)))
	}
	return []byte(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[` + strings.Join(messages, ",") + `]}`)
}
