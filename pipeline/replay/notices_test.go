package replay_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// E1, E2: every real session as Claude Code sends it to its newest models, with a system
// message behind every turn, in a small and in a large window: none of its requests is
// refused, and every original that a prompt lost comes back.
func TestRealSessionsWithANoticeBehindEveryTurn(t *testing.T) {
	t.Parallel()
	files := sharedtest.Files(t, "data/transcripts/*.anthropic.json")
	windows := []int{64_000, 200_000}
	for i := range fulltest.Part(len(files) * len(windows)) {
		file, window := files[i/2], windows[i%2]
		t.Run(fmt.Sprintf("%s in %d", filepath.Base(file), window), func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if body, err = pipelinetest.WithNotices(body); err != nil {
				t.Fatal(err)
			}
			double := newDouble(t, window)
			double.Trust(body)
			run := newSampled(t, double, window)
			var last replay.Step
			sum, err := run.Run(t.Context(), body, func(step replay.Step) error {
				if step.Invalid != "" {
					t.Errorf("request %d: %s", step.Number, step.Invalid)
				}
				last = step
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			lost, back := originals(t, run, last, body)
			if back != lost || sum.Epochs > 0 && lost == 0 {
				t.Errorf("%d of %d originals are back", back, lost)
			}
			t.Logf("%d requests, %d epochs, %d of %d originals, cost %d of %d", sum.Exchanges, sum.Epochs, back, lost, sum.CostMicroUSD, sum.DirectMicroUSD)
		})
	}
}

// newSampled returns a replay that holds the prompts of epochs, and every eighth, against
// the provider's rules: between epochs only the client's own end grows.
func newSampled(t *testing.T, double *providerdouble.Double, window int) *replay.Replay {
	t.Helper()
	sent, before := 0, 0
	run, err := replay.New(replay.Config{
		Format: conversation.Anthropic, Pipeline: modules.Catalog().Default(), Window: window,
		Validate: func(format conversation.Format, body []byte) error {
			sent++
			shrank := len(body) < before
			before = len(body)
			if !shrank && sent%8 > 0 {
				return nil
			}
			return double.Validate(string(format), body)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// originals returns how many messages the last prompt of a session has another form for,
// and of how many the archive returns the very bytes that were sent.
func originals(t *testing.T, run *replay.Replay, last replay.Step, body []byte) (lost, back int) {
	t.Helper()
	if last.Sent.Projection == nil {
		return 0, 0
	}
	envelope, err := wire.Open(body, anthropic.New().List())
	if err != nil {
		t.Fatal(err)
	}
	kept := run.Originals(last.Sent.Lane.ID)
	for i := range last.Sent.Projection.Covers {
		if bytes.Equal(kept[i], envelope.Element(i)) {
			back++
		}
	}
	return last.Sent.Projection.Covers, back
}
