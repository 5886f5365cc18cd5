package preview_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/pipeline/wire/sessiontest"
)

// from is when the recorded sessions begin.
func from() time.Time { return time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC) }

func models(t testing.TB) *tokens.Models {
	t.Helper()
	known, err := tokens.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// settings returns the defaults with another target.
func settings(target float64) pipeline.Config {
	config := modules.Catalog().Default()
	config.Modules = []string{"ipc"}
	pipeline.Change[ipc.Config](&config).TargetUtilization = target
	pipeline.Change[ipc.Config](&config).CompressTo = min(pipeline.SettingsOf[ipc.Config](config).CompressTo, target-0.2)
	return config
}

// replayed is what a replay of the originals makes of a session.
type replayed struct {
	sum  replay.Sum
	sent int64
}

func codecOf(format conversation.Format) wire.Codec {
	switch format {
	case conversation.OpenAIChat:
		return openaichat.New()
	case conversation.OpenAIResponses:
		return openairesponses.New()
	default:
		return anthropic.New()
	}
}

// record replays a body and returns what would be stored of it, and what became of it.
func record(t testing.TB, format conversation.Format, body []byte, window int, pace time.Duration, config pipeline.Config) (session.Recorded, replayed) {
	t.Helper()
	clock := func(request int) time.Time { return from().Add(time.Duration(request) * pace) }
	run, err := replay.New(replay.Config{Format: format, Pipeline: config, Window: window, Clock: clock, TTL: session.ShortTTL})
	if err != nil {
		t.Fatal(err)
	}
	recorded, found := session.Recorded{TTL: session.ShortTTL}, replayed{}
	found.sum, err = run.Run(t.Context(), body, func(step replay.Step) error {
		found.sent += int64(step.After)
		recorded.Requests = append(recorded.Requests, session.Sent{
			At: clock(step.Number - 1), Position: step.Messages, Before: step.Before, After: step.After, Limit: step.Sent.Report.Limit,
			IsEpoch: step.Sent.Report.Archived > 0,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	codec := codecOf(format)
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	request, err := codec.Request(envelope)
	if err != nil {
		t.Fatal(err)
	}
	recorded.Model = request.Model
	for i := range envelope.Len() {
		digest, err := wire.Digest(codec, envelope.Element(i), counter.Message)
		if err != nil {
			t.Fatal(err)
		}
		recorded.Messages = append(recorded.Messages, session.Counted{Role: digest.Role, Flags: digest.Flags, Tokens: digest.Tokens})
	}
	return recorded, found
}

// agree holds what the preview says of sessions against what a replay made of them.
// sent and net are how far the two may be apart, as shares. The preview knows the sizes of results,
// not what they are, which decides what a compaction keeps: their numbers differ more.
func agree(t *testing.T, figures preview.Figures, actual replayed, factor, epochs, sent, net float64) {
	t.Helper()
	if distance := figures.Epochs - actual.sum.Epochs; math.Abs(float64(distance)) > max(1, epochs*float64(actual.sum.Epochs)) {
		t.Errorf("%d epochs, the replay made %d", figures.Epochs, actual.sum.Epochs)
	}
	if off := float64(figures.Sent)/float64(actual.sent) - 1; math.Abs(off) > sent {
		t.Errorf("sends %+.1f %% of what the replay did", 100*off)
	}
	// The replay's money is that of o200k tokens.
	direct, saved := factor*float64(actual.sum.DirectMicroUSD), factor*float64(actual.sum.DirectMicroUSD-actual.sum.CostMicroUSD)
	if off := (float64(figures.Net) - saved) / direct; math.Abs(off) > net {
		t.Errorf("saves %d, the replay %.0f: %+.1f %% of %.0f", figures.Net, saved, 100*off, direct)
	}
}

// remembersRight holds what the preview says of a session, and of it in a smaller
// window, against what a module without a memory comes to.
func remembersRight(t *testing.T, config pipeline.Config, known *tokens.Models, recorded session.Recorded) {
	t.Helper()
	for _, share := range []int{100, 40} {
		smaller := recorded
		smaller.Requests = slices.Clone(recorded.Requests)
		for i := range smaller.Requests {
			smaller.Requests[i].Limit = smaller.Requests[i].Limit * share / 100
		}
		same := []session.Recorded{smaller}
		figures, err := preview.Run(t.Context(), config, known, same)
		if err != nil {
			t.Fatal(err)
		}
		if forgetful, err := preview.RunForgetful(t.Context(), config, known, same); err != nil || figures != forgetful {
			t.Errorf("at %d %%: %+v, without a memory %+v, %v", share, figures, forgetful, err)
		}
	}
}

func TestPreviewAgreesWithAReplayOfTheOriginals(t *testing.T) {
	t.Parallel()
	known := models(t)
	formats := []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses}
	targets := []float64{0.75, 0.5, 0.9}
	paces := []time.Duration{20 * time.Second, 7 * time.Minute}
	for i := range fulltest.Part(len(formats) * len(targets) * len(paces)) {
		target, format, pace := targets[i%3], formats[i/3%3], paces[i/9]
		t.Run(fmt.Sprint(format, target, pace), func(t *testing.T) {
			t.Parallel()
			generated := sessiontest.Generate(7, sessiontest.Options{Format: format, Turns: 160, Parallel: true, TargetTokens: 150_000})
			recorded, actual := record(t, format, generated.Body(generated.Steps()-1), 60_000, pace, settings(target))
			figures, err := preview.Run(t.Context(), settings(target), known, []session.Recorded{recorded})
			if err != nil {
				t.Fatal(err)
			}
			agree(t, figures, actual, known.Lookup(recorded.Model).TokensPerO200k, 0.2, 0.11, 0.06)
			if target == 0.75 {
				remembersRight(t, settings(target), known, recorded)
			}
		})
	}
}

func TestPreviewAgreesWithAReplayOfRecordedSessions(t *testing.T) {
	t.Parallel()
	known := models(t)
	files := sharedtest.Files(t, "data/transcripts/*.json")
	for i := range fulltest.Part(len(files)) {
		t.Run(strings.TrimSuffix(filepath.Base(files[i]), ".json"), func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(files[i])
			if err != nil {
				t.Fatal(err)
			}
			recorded, actual := record(t, replay.Detect(body), body, 64_000, 20*time.Second, settings(0.75))
			figures, err := preview.Run(t.Context(), settings(0.75), known, []session.Recorded{recorded})
			if err != nil {
				t.Fatal(err)
			}
			agree(t, figures, actual, known.Lookup(recorded.Model).TokensPerO200k, 0.2, 0.11, 0.06)
			remembersRight(t, settings(0.75), known, recorded)
		})
	}
}

func TestALowerTargetCompressesEarlier(t *testing.T) {
	t.Parallel()
	generated := sessiontest.Generate(7, sessiontest.Options{Turns: 120, Parallel: true, TargetTokens: 120_000})
	recorded, _ := record(t, conversation.Anthropic, generated.Body(generated.Steps()-1), 60_000, 20*time.Second, settings(0.75))
	last := int64(0)
	for _, target := range []float64{0.4, 0.65, 0.95} {
		figures, err := preview.Run(t.Context(), settings(target), models(t), []session.Recorded{recorded})
		if err != nil {
			t.Fatal(err)
		}
		if figures.Sent <= last || figures.Sent > figures.Received || figures.Requests != len(recorded.Requests) {
			t.Errorf("at %v: %+v, sent before %d", target, figures, last)
		}
		last = figures.Sent
	}
}

// What goes out as an outline is no part of what goes out word for word.
func TestShareOfHistoryAtL3IsAddedUp(t *testing.T) {
	t.Parallel()
	generated := sessiontest.Generate(7, sessiontest.Options{Turns: 120, Parallel: true, TargetTokens: 120_000})
	recorded, _ := record(t, conversation.Anthropic, generated.Body(generated.Steps()-1), 40_000, 20*time.Second, settings(0.75))
	atL3 := map[int]int64{}
	for _, deepest := range []int{0, 1, 2, 3} {
		config := settings(0.5)
		pipeline.Change[ipc.Config](&config).DeepestLevel = deepest
		figures, err := preview.Run(t.Context(), config, models(t), []session.Recorded{recorded, recorded})
		if err != nil || figures.Received != 0 && figures.AtL3 > figures.Received-figures.Verbatim {
			t.Fatalf("down to L%d: %+v, %v", deepest, figures, err)
		}
		atL3[deepest] = figures.AtL3
		if one, err := preview.Run(t.Context(), config, models(t), []session.Recorded{recorded}); err != nil || 2*one.AtL3 != figures.AtL3 {
			t.Errorf("down to L%d: %d tokens, of two such sessions %d, %v", deepest, one.AtL3, figures.AtL3, err)
		}
	}
	if atL3[0] != 0 || atL3[1] != 0 || atL3[2] != 0 || atL3[3] == 0 {
		t.Errorf("tokens at L3 by the deepest level: %v", atL3)
	}
}

func TestNothingIsMadeOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	at := from()
	for name, recorded := range map[string]session.Recorded{
		"no messages":      {Model: "claude-sonnet-4-5", Requests: []session.Sent{{At: at, Position: 4, Before: 900, Limit: 100}}},
		"no requests":      {Model: "claude-sonnet-4-5", Messages: []session.Counted{{Role: conversation.User, Tokens: 5}}},
		"unknown model":    {Model: "nobody-knows", Messages: []session.Counted{{Role: conversation.User, Tokens: 5}}, Requests: []session.Sent{{At: at, Position: 1, Before: 5}}},
		"results, no call": {Model: "claude-sonnet-4-5", Messages: []session.Counted{{Role: conversation.User, Flags: conversation.HasResult, Tokens: 500}}, Requests: []session.Sent{{At: at, Position: 1, Before: 500, Limit: 100}}},
	} {
		figures, err := preview.Run(t.Context(), settings(0.5), models(t), []session.Recorded{recorded})
		if err != nil || figures.Sessions != 1 || figures.Epochs != 0 || figures.Net != 0 {
			t.Errorf("%s: %+v, %v", name, figures, err)
		}
	}
}

// The proxy learns a model's tokens from the provider's counts. A preview uses the same scale.
func TestPreviewUsesTheRecordedScaleOfTokens(t *testing.T) {
	t.Parallel()
	talk := sessiontest.Generate(4, sessiontest.Options{Turns: 40, TargetTokens: 60_000})
	recorded, _ := record(t, conversation.Anthropic, talk.Body(talk.Steps()-1), 100_000, time.Minute, settings(0.75))
	var received int64
	for i := range recorded.Requests {
		recorded.Requests[i].Before = recorded.Requests[i].Before * 7 / 10
		received += int64(recorded.Requests[i].Before)
	}
	figures, err := preview.Run(t.Context(), settings(0.75), models(t), []session.Recorded{recorded})
	if err != nil || math.Abs(float64(figures.Received-received)) > 0.01*float64(received) {
		t.Errorf("%d tokens of prompts, %d were recorded: %v", figures.Received, received, err)
	}
}

func TestWhatHappenedIsAddedUp(t *testing.T) {
	t.Parallel()
	models := func(string) tokens.Model {
		return tokens.Model{Price: tokens.Price{Output: 15, LongAbove: 100, LongOutput: 2}}
	}
	sum := preview.Actual(models, []session.Recorded{
		{Requests: []session.Sent{{Before: 90, After: 50, Limit: 100, IsEpoch: true, Net: -4, Cost: 400, Output: 20}, {Before: 120, After: 110, Limit: 100, Net: 9, Cost: 1000, Output: 30}}},
		{Requests: []session.Sent{{Before: 10, After: 10, Cost: 5, Output: 1}, {Before: 300, After: 80, Reach: true}}},
	})
	want := preview.Figures{Sessions: 2, Requests: 4, Epochs: 1, Received: 520, Sent: 250, TooLong: 1, Cost: 200, Net: 5, Reach: 1, ReachReceived: 300, ReachSent: 80}
	if sum != want || sum.Saved() != 50 || sum.Sendable() != 220 {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

func BenchmarkFortySessions(b *testing.B) {
	var recorded []session.Recorded
	for seed := range uint64(4) {
		generated := sessiontest.Generate(seed, sessiontest.Options{Turns: 200, Parallel: true, TargetTokens: 180_000})
		one, _ := record(b, conversation.Anthropic, generated.Body(generated.Steps()-1), 100_000, 20*time.Second, settings(0.75))
		for range 10 {
			recorded = append(recorded, one)
		}
	}
	known := models(b)
	b.ResetTimer()
	for b.Loop() {
		if _, err := preview.Run(b.Context(), settings(0.6), known, recorded); err != nil {
			b.Fatal(err)
		}
	}
}
