package replay_test

import (
	"os"
	"path/filepath"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/sharedtest"
)

// No prompt of a recorded session is larger than a small window: what the limit for prompts
// cannot be reached for, since the newest turn alone takes it, still fits beside an answer.
func TestRecordedPromptsFitSmallWindows(t *testing.T) {
	t.Parallel()
	sessions := []struct {
		pattern string
		window  int
	}{
		{"cc-single-ec.anthropic.json", 16_000}, {"cc-single-1c.anthropic.json", 24_000}, {"cline-small.openai.json", 16_000}, {"pi-large-session.anthropic.json", 32_000},
	}
	for i := range fulltest.Part(len(sessions)) {
		pattern, window := sessions[i].pattern, sessions[i].window
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			for _, file := range sharedtest.Files(t, "data/transcripts/"+pattern) {
				body, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				double := newDouble(t, window)
				double.Trust(body)
				run, largest := newReplay(t, replay.Detect(body), double, window), 0
				sum, err := run.Run(t.Context(), body, func(step replay.Step) error {
					largest = max(largest, step.After)
					if step.After > window || step.Invalid != "" {
						t.Errorf("request %d: %d tokens of %d, %s", step.Number, step.After, window, step.Invalid)
					}
					return nil
				})
				if err != nil || sum.Epochs == 0 && largest > sum.Window {
					t.Errorf("%+v, %v", sum, err)
				}
				t.Logf("%s: %d requests, the largest prompt has %d tokens", filepath.Base(file), sum.Exchanges, largest)
			}
		})
	}
}
