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
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// thread is a subagent made of the beginning of a recorded session.
type thread struct {
	name     string
	body     []byte
	requests int // after which it ends
}

// longestThread is how many messages of a session are read.
const longestThread = 50

// threads returns the recorded sessions cut to the length of subagents: 17 to 23 requests, by the session's name. Every other one of
// them has ended before; the others are measured. The lengths and minContext below were chosen so that compactions come
// late, and the results were seen while the rule was written: this shows that the rule works, not how much it saves.
func threads(t *testing.T) (past, measured []thread) {
	t.Helper()
	for i, file := range sharedtest.Files(t, "data/transcripts/*.anthropic.json") {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		codec := anthropic.New()
		envelope, err := wire.Open(body, codec.List())
		if err != nil {
			t.Fatal(err)
		}
		body = envelope.Seal([]wire.Piece{{From: 0, To: min(longestThread, envelope.Len())}})
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(filepath.Base(file)))
		one := thread{name: filepath.Base(file), body: body, requests: 17 + int(hash.Sum32()>>3)%7}
		if i%2 == 0 {
			past = append(past, one)
		} else {
			measured = append(measured, one)
		}
	}
	return past, measured
}

// Short subagents no longer pay for a compaction just before they end: each of these grows past minContext shortly
// before its last request. The threads that are measured cost less with what others of
// the kind have lived. Where minContext is passed early, compactions pay, and are made as before.
func TestShortThreadsAreNotCompactedBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	past, measured := threads(t)
	var lives []int
	for _, one := range past {
		lives = append(lives, 2*one.requests-1) // messages of its last request
	}
	slices.Sort(lives)
	run := func(one thread, lives []int, minContext int, each func(replay.Step)) replay.Sum {
		config := modules.Catalog().Default()
		ofIPC := pipeline.Change[ipc.Config](&config)
		ofIPC.Trigger, ofIPC.MinContext = ipc.TriggerBreakEven, minContext
		start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		r, err := replay.New(replay.Config{
			Format: conversation.Anthropic, Pipeline: config, TTL: 5 * time.Minute,
			Clock: func(request int) time.Time { return start.Add(time.Duration(request) * 15 * time.Second) },
		})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := r.RunSubagent(t.Context(), one.body, one.requests, lives, each)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	var late, early [2]replay.Sum // without what is known, and with it
	for n, one := range measured {
		var sizes []int
		run(one, nil, 10_000_000, func(step replay.Step) { sizes = append(sizes, step.Before) })
		for when, sums := range map[int]*[2]replay.Sum{len(sizes) - 3: &late, len(sizes) / 3: &early} {
			if sums == &early && n%2 == 1 {
				continue // half of them tell as much
			}
			minContext := max(10_000, sizes[when])
			for i, known := range [][]int{nil, lives} {
				sum := run(one, known, minContext, func(replay.Step) {})
				sums[i].Epochs, sums[i].CostMicroUSD, sums[i].DirectMicroUSD = sums[i].Epochs+sum.Epochs, sums[i].CostMicroUSD+sum.CostMicroUSD, sums[i].DirectMicroUSD+sum.DirectMicroUSD
			}
		}
	}
	for name, sums := range map[string][2]replay.Sum{"late": late, "early": early} {
		t.Logf("%d threads, %d past ones, minContext passed %s: %d compactions for %d µ$ become %d for %d µ$; without any %d µ$",
			len(measured), len(past), name, sums[0].Epochs, sums[0].CostMicroUSD, sums[1].Epochs, sums[1].CostMicroUSD, sums[0].DirectMicroUSD)
	}
	if late[0].CostMicroUSD <= late[0].DirectMicroUSD || late[1].Epochs >= late[0].Epochs || late[1].CostMicroUSD >= late[0].CostMicroUSD {
		t.Error("what is known of past threads saves nothing")
	}
	if early[1].CostMicroUSD > early[0].CostMicroUSD+early[0].CostMicroUSD/100 {
		t.Error("compactions that pay are put off")
	}
}
