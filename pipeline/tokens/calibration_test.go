package tokens_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
)

// provider simulates one that counts with another vocabulary, cl100k_base, whose
// tokens it makes smaller, adds what no client knows of to each prompt, and
// splits a few words otherwise each time.
type provider struct {
	count  func(string) int
	random *rand.Rand
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	return &provider{count: reference(t, "cl100k_base"), random: rand.New(rand.NewPCG(5, 6))}
}

const (
	providerScale = 1.28
	providerAdds  = 346 // tokens of its own tool instructions
)

// report returns what the provider reports for a prompt with so many cl100k tokens.
func (p *provider) report(prompt int) int {
	noise := 1 + 0.01*p.random.NormFloat64()
	return providerAdds + int(float64(prompt)*providerScale*noise)
}

// session is a conversation that grows by pieces of a text behind a system prompt.
func session(counter *tokens.Counter, provider *provider, text string, each func(estimated, reported int)) {
	const turn = 1200 // bytes
	system := strings.Repeat("You are a coding agent. Read the files before you change them, run the tests after, and say what you did. ", 50)
	estimated, prompt := tokens.ToolInstructions+counter.Count(system), provider.count(system)
	for piece := range slices.Chunk([]byte(strings.ToValidUTF8(text, "")), turn) {
		message := strings.ToValidUTF8(string(piece), "")
		estimated += counter.Message(conversation.Message{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.Text, Text: message}}})
		prompt += provider.count(message) + 7
		each(estimated, provider.report(prompt))
	}
}

// B3.
func TestEstimatesAreWithinFivePercentAfterTenRequests(t *testing.T) {
	t.Parallel()
	counter, provider := newCounter(t), newProvider(t)
	model := models(t).Lookup("claude-sonnet-4-5")

	texts := corpus(t)
	texts["everything"] = mixed(texts)
	for kind, text := range texts {
		calibration, workspace := tokens.NewCalibration(), tenants.NewWorkspaceID()
		var off []float64
		session(counter, provider, text[:min(len(text), 90_000)], func(estimated, reported int) {
			estimate := float64(estimated) * calibration.Factor(workspace, model)
			off = append(off, math.Abs(estimate-float64(reported))/float64(reported))
			calibration.Observe(workspace, model, estimated, reported)
		})
		if len(off) < 30 {
			t.Fatalf("%s: only %d requests", kind, len(off))
		}
		if off[0] > 0.15 || off[1] > 0.15 {
			t.Errorf("%s: %.1f %% off at the first request and %.1f %% at the second, want 15 %% at most", kind, 100*off[0], 100*off[1])
		}
		late := slices.Sorted(slices.Values(off[10:]))
		if p95 := late[len(late)*95/100]; p95 > 0.05 {
			t.Errorf("%s: after ten requests p95 is %.1f %% off, want 5 %% at most", kind, 100*p95)
		}
		t.Logf("%-10s first %.1f %%, second %.1f %%, p95 after ten %.1f %%", kind, 100*off[0], 100*off[1], 100*late[len(late)*95/100])
	}
}

// B3: one report of a long prompt is enough for the next to be close.
func TestFirstReportMovesMostOfTheWay(t *testing.T) {
	t.Parallel()
	counter, provider := newCounter(t), newProvider(t)
	model := models(t).Lookup("claude-sonnet-4-5")

	for kind, text := range corpus(t) {
		text = strings.ToValidUTF8(text[:min(len(text), 60_000)], "")
		calibration, workspace := tokens.NewCalibration(), tenants.NewWorkspaceID()
		estimated, reported := counter.Count(text), provider.report(provider.count(text))
		calibration.Observe(workspace, model, estimated, reported)
		if off := math.Abs(float64(estimated)*calibration.Factor(workspace, model)/float64(reported) - 1); off > 0.15 {
			t.Errorf("%s: %.1f %% off after one report, want 15 %% at most", kind, 100*off)
		}
	}
}

// B3, B8.
func TestCalibrationIsNotCarriedOverToAnotherModelProviderOrWorkspace(t *testing.T) {
	t.Parallel()
	table, calibration, workspace := models(t), tokens.NewCalibration(), tenants.NewWorkspaceID()
	sonnet, opus := table.Lookup("claude-sonnet-4-5"), table.Lookup("claude-opus-5-5")
	calibration.Observe(workspace, sonnet, 100_000, 190_000)

	if got := calibration.Factor(workspace, sonnet); math.Abs(got-1.9) > 0.1 {
		t.Errorf("learned factor %.2f, want about 1.9", got)
	}
	if got := calibration.Factor(workspace, opus); got != opus.TokensPerO200k {
		t.Errorf("another model: factor %.2f, want its own %.2f", got, opus.TokensPerO200k)
	}
	elsewhere := sonnet
	elsewhere.Provider = "openai" // through a gateway that speaks its dialect
	if got := calibration.Factor(workspace, elsewhere); got != sonnet.TokensPerO200k {
		t.Errorf("another provider: factor %.2f, want %.2f", got, sonnet.TokensPerO200k)
	}
	if got := calibration.Factor(tenants.NewWorkspaceID(), sonnet); got != sonnet.TokensPerO200k {
		t.Errorf("another workspace: factor %.2f, want %.2f", got, sonnet.TokensPerO200k)
	}
	if got := calibration.Factor(workspace, table.Lookup("claude-sonnet-4-5-20250929").WithWindow(1000)); math.Abs(got-1.9) > 0.1 {
		t.Errorf("the same model under another name: factor %.2f, want about 1.9", got)
	}
}

func TestReportsThatCannotBeMeantAreIgnored(t *testing.T) {
	t.Parallel()
	model := models(t).Lookup("claude-sonnet-4-5")

	for _, report := range [][2]int{{0, 0}, {100, 0}, {0, 100}, {-5, 100}, {100, -5}, {100_000, 1000}, {1000, 100_000}} {
		calibration, workspace := tokens.NewCalibration(), tenants.NewWorkspaceID()
		calibration.Observe(workspace, model, report[0], report[1])
		if got := calibration.Factor(workspace, model); got != model.TokensPerO200k {
			t.Errorf("%d estimated, %d reported: factor %.2f, want %.2f", report[0], report[1], got, model.TokensPerO200k)
		}
	}
}

func TestFactorMovesInBoundedSteps(t *testing.T) {
	t.Parallel()
	calibration, workspace, model := tokens.NewCalibration(), tenants.NewWorkspaceID(), tokens.Model{Name: "m"}
	for range 5 {
		calibration.Observe(workspace, model, 100_000, 100_000)
	}
	before := calibration.Factor(workspace, model)

	calibration.Observe(workspace, model, 100_000, 700_000)
	if after := calibration.Factor(workspace, model); after <= before || after > before*1.11 {
		t.Errorf("one odd report moved the factor from %.2f to %.2f", before, after)
	}
	before = calibration.Factor(workspace, model)
	calibration.Observe(workspace, model, 100_000, 25_000)
	if after := calibration.Factor(workspace, model); after >= before || after < before*0.89 {
		t.Errorf("one low report moved the factor from %.2f to %.2f", before, after)
	}
	for range 200 {
		calibration.Observe(workspace, model, 100_000, 790_000)
	}
	if got := calibration.Factor(workspace, model); got != 4 {
		t.Errorf("factor %.2f, want the bound of 4", got)
	}
}

func TestShortPromptsMoveTheFactorLittle(t *testing.T) {
	t.Parallel()
	calibration, workspace, model := tokens.NewCalibration(), tenants.NewWorkspaceID(), tokens.Model{Name: "m", TokensPerO200k: 1}

	calibration.Observe(workspace, model, 60, 60+providerAdds) // a title request
	if got := calibration.Factor(workspace, model); got > 1.7 {
		t.Errorf("factor %.2f after a prompt of 60 tokens", got)
	}
}

func TestCalibrationForgetsRatherThanGrows(t *testing.T) {
	t.Parallel()
	calibration, model := tokens.NewCalibration(), tokens.Model{Name: strings.Repeat("m", 1000), TokensPerO200k: 1}
	workspaces := make([]tenants.WorkspaceID, 21_000)
	for i := range workspaces {
		workspaces[i] = tenants.NewWorkspaceID()
		calibration.Observe(workspaces[i], model, 100_000, 200_000)
	}

	known := 0
	for _, workspace := range workspaces {
		if calibration.Factor(workspace, model) > 1.5 {
			known++
		}
	}
	if known != 20_000 {
		t.Errorf("%d factors are remembered, want 20000", known)
	}
}

func TestCalibrationIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	calibration, workspace, model := tokens.NewCalibration(), tenants.NewWorkspaceID(), tokens.Model{Name: "m", TokensPerO200k: 1}

	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 200 {
				calibration.Observe(workspace, model, 50_000, 75_000)
				calibration.Factor(workspace, model)
			}
		})
	}
	workers.Wait()
	if got := calibration.Factor(workspace, model); math.Abs(got-1.5) > 0.01 {
		t.Errorf("factor %.3f, want 1.5", got)
	}
}

// mixed returns pieces of all texts, one after the other.
func mixed(texts map[string]string) string {
	var all strings.Builder
	for i := 0; all.Len() < 90_000; i += 3000 {
		for _, kind := range []string{"code", "english", "json", "cjk", "base64"} {
			text := texts[kind]
			all.WriteString(strings.ToValidUTF8(text[i%len(text):min(i%len(text)+3000, len(text))], ""))
		}
	}
	return all.String()
}
