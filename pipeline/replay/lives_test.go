package replay_test

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/sharedtest"
)

// thread is a subagent made of the beginning of a recorded session.
type thread struct {
	name     string
	body     []byte
	requests int // after which it ends
}

// threads returns the recorded sessions cut to the length of subagents: 14 to 26 requests, by the session's name. Every other one of
// them has ended before; the others are held out, and nothing was tuned on either.
func threads(t *testing.T) (past, heldOut []thread) {
	t.Helper()
	for i, file := range sharedtest.Files(t, "data/transcripts/*.anthropic.json") {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(filepath.Base(file)))
		one := thread{name: filepath.Base(file), body: body, requests: 14 + int(hash.Sum32()>>3)%13}
		if i%2 == 0 {
			past = append(past, one)
		} else {
			heldOut = append(heldOut, one)
		}
	}
	return past, heldOut
}

// Short subagents no longer pay for a compaction just before they end: on threads that nothing is known of, the cost
// with what others of the kind have lived is no higher than without, and fewer compactions are made.
func TestShortThreadsAreNotCompactedBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	past, heldOut := threads(t)
	var lives []int
	for _, one := range past {
		lives = append(lives, 2*one.requests-1) // messages of its last request
	}
	slices.Sort(lives)
	run := func(one thread, lives []int) replay.Sum {
		config := modules.Catalog().Default()
		ofIPC := pipeline.Change[ipc.Config](&config)
		ofIPC.Trigger, ofIPC.MinContext = ipc.TriggerBreakEven, 12_000
		start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		r, err := replay.New(replay.Config{
			Format: conversation.Anthropic, Pipeline: config, TTL: 5 * time.Minute,
			Clock: func(request int) time.Time { return start.Add(time.Duration(request) * 15 * time.Second) },
		})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := r.RunSubagent(t.Context(), one.body, one.requests, lives)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	var without, with replay.Sum
	for _, one := range heldOut {
		before, after := run(one, nil), run(one, lives)
		t.Logf("%s, %d requests: %d compactions for %d µ$ become %d for %d µ$", one.name, one.requests, before.Epochs, before.CostMicroUSD, after.Epochs, after.CostMicroUSD)
		without.Epochs, with.Epochs = without.Epochs+before.Epochs, with.Epochs+after.Epochs
		without.CostMicroUSD, with.CostMicroUSD = without.CostMicroUSD+before.CostMicroUSD, with.CostMicroUSD+after.CostMicroUSD
		without.DirectMicroUSD += before.DirectMicroUSD
	}
	t.Logf("%d threads, %d past ones: %d compactions for %d µ$ become %d for %d µ$; without any %d µ$", len(heldOut), len(past), without.Epochs, without.CostMicroUSD, with.Epochs, with.CostMicroUSD, without.DirectMicroUSD)
	if len(lives) < 8 || without.Epochs == 0 || with.Epochs >= without.Epochs || with.CostMicroUSD > without.CostMicroUSD {
		t.Error("what is known of past threads saves nothing")
	}
}
