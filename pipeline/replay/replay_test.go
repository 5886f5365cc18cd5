package replay_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/sessiontest"
)

// window is small enough for several epochs.
const window = 100_000

// C2, C3, C10, E2: prompts grow by their end only, but for one break an epoch;
// every body is legal; every original is kept.
func TestGeneratedSessionsReplayWithoutAFault(t *testing.T) {
	t.Parallel()
	for _, format := range []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			double := newDouble(t, window)
			session := sessiontest.Generate(7, sessiontest.Options{
				Format: format, Turns: 200, Parallel: true, Thinking: true, Images: true, CJK: true, ToolErrors: true, Reminders: true,
				TargetTokens: 150_000, Signer: double,
			})
			body := session.Body(session.Steps() - 1)
			run := newReplay(t, format, double, window)
			var last replay.Step
			durable := 0 // messages of the newest epoch's request
			sum, err := run.Run(t.Context(), body, func(step replay.Step) error {
				if step.Epochs > last.Epochs {
					durable = step.Messages
				}
				if step.Invalid != "" {
					t.Errorf("request %d: %s", step.Number, step.Invalid)
				}
				if last.Sent.Body != nil && !step.Bust && !startsWith(step.Sent.Body, last.Sent.Body) {
					t.Errorf("request %d does not begin with the one before", step.Number)
				}
				last = step
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			// Items of Responses do not always tell where one answer ends.
			if sum.Exchanges > session.Steps() || sum.Exchanges < session.Steps()*19/20 || sum.Epochs == 0 || sum.Epochs > 10 || sum.Busts > sum.Epochs {
				t.Errorf("%d of %d exchanges, %d epochs, %d busts", sum.Exchanges, session.Steps(), sum.Epochs, sum.Busts)
			}
			if sum.CostMicroUSD >= sum.DirectMicroUSD {
				t.Errorf("costs %d µ$ against %d without the proxy", sum.CostMicroUSD, sum.DirectMicroUSD)
			}
			originals := run.Originals(last.Sent.Lane.ID)
			if len(originals) < durable || durable == 0 {
				t.Errorf("%d messages are kept, the newest epoch had %d", len(originals), durable)
			}
			for i, original := range session.Messages(session.Steps() - 1)[:len(originals)] {
				if !bytes.Equal(originals[i], original) {
					t.Fatalf("message %d is not as it was sent", i)
				}
			}
		})
	}
}

// A session that fits its window is left alone.
func TestSessionThatFitsIsLeftAlone(t *testing.T) {
	t.Parallel()
	double := newDouble(t, 200_000)
	session := sessiontest.Generate(3, sessiontest.Options{Turns: 30, TargetTokens: 20_000, CacheMarkers: true, Signer: double})
	body := session.Body(session.Steps() - 1)
	run := newReplay(t, conversation.Anthropic, double, 200_000)
	sum, err := run.Run(t.Context(), body, func(step replay.Step) error {
		if step.Compression != string(pipeline.None) || step.Before != step.After {
			t.Errorf("request %d: %s, %d → %d tokens", step.Number, step.Compression, step.Before, step.After)
		}
		return nil
	})
	if err != nil || sum.Busts != 0 || sum.Difference() != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestFormatsAreTold(t *testing.T) {
	t.Parallel()
	for _, format := range []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses} {
		session := sessiontest.Generate(1, sessiontest.Options{Format: format, Turns: 3})
		if got := replay.Detect(session.Body(2)); got != format {
			t.Errorf("%s is taken for %q", format, got)
		}
	}
	for _, other := range []string{"", "[]", "{}", `{"messages":3}`} {
		if got := replay.Detect([]byte(other)); got != "" {
			t.Errorf("%q is taken for %s", other, got)
		}
	}
}

func TestBrokenBodyIsRefused(t *testing.T) {
	t.Parallel()
	run := newReplay(t, conversation.Anthropic, newDouble(t, window), window)
	if _, err := run.Run(t.Context(), []byte(`{"model":"claude-sonnet-4-5"}`), nil); err == nil || !strings.Contains(err.Error(), "messages") {
		t.Errorf("error %v does not name what is missing", err)
	}
	if _, err := replay.New(replay.Config{Format: "cohere"}); err == nil {
		t.Error("an unknown format is accepted")
	}
}

// Real sessions.
func TestRealSessionsReplayWithoutAFault(t *testing.T) {
	t.Parallel()
	files := sharedtest.Files(t, "data/transcripts/cc-single-*.json")
	for i := range fulltest.Part(len(files)) {
		file := files[i]
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		double := newDouble(t, 40_000)
		double.Trust(body)
		sum, err := newReplay(t, replay.Detect(body), double, 40_000).Run(t.Context(), body, func(step replay.Step) error {
			if step.Invalid != "" {
				t.Errorf("%s: request %d: %s", filepath.Base(file), step.Number, step.Invalid)
			}
			if isEpoch := step.Compression == string(pipeline.Epoch); isEpoch != (step.Certificate != nil) || !step.Certificate.IsComplete() {
				t.Errorf("%s: request %d: %s, kept %+v", filepath.Base(file), step.Number, step.Compression, step.Certificate)
			}
			return nil
		})
		if err != nil || sum.Busts > sum.Epochs {
			t.Errorf("%s: %+v, %v", filepath.Base(file), sum, err)
		}
	}
}

// startsWith reports whether a body's conversation begins with all of another's.
func startsWith(body, other []byte) bool {
	return bytes.HasPrefix(body, bytes.TrimRight(other, "]}"))
}

func newDouble(t *testing.T, window int) *providerdouble.Double {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return providerdouble.NewHandler(providerdouble.Config{Window: window, Count: counter.Count})
}

func newReplay(t *testing.T, format conversation.Format, double *providerdouble.Double, window int) *replay.Replay {
	t.Helper()
	run, err := replay.New(replay.Config{
		Format: format, Pipeline: modules.Catalog().Default(), Window: window,
		Validate: func(format conversation.Format, body []byte) error { return double.Validate(string(format), body) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}
