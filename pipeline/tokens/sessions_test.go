package tokens_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// B3, on real sessions.
func TestEstimatesOfRealSessionsAreWithinFivePercentAfterTenRequests(t *testing.T) {
	t.Parallel()
	files := sharedtest.Files(t, "data/transcripts/*.anthropic.json")
	counter, provider := newCounter(t), newProvider(t)
	model := models(t).Lookup("claude-sonnet-4-5")

	var late []float64
	for _, file := range files {
		calibration, workspace := tokens.NewCalibration(), tenants.NewWorkspaceID()
		requests, estimated, prompt := 0, 0, 0
		for _, message := range messages(t, file, 120_000) {
			estimated += counter.Message(message)
			prompt += provider.message(message)
			if message.Role != conversation.User {
				continue
			}
			reported := provider.report(prompt)
			if requests++; requests > 10 {
				late = append(late, math.Abs(float64(estimated)*calibration.Factor(workspace, model)/float64(reported)-1))
			}
			calibration.Observe(workspace, model, estimated, reported)
		}
	}
	if len(late) < 100 {
		t.Fatalf("only %d requests", len(late))
	}
	slices.Sort(late)
	if p95 := late[len(late)*95/100]; p95 > 0.05 {
		t.Errorf("p95 is %.1f %% off, want 5 %% at most", 100*p95)
	}
	t.Logf("%d requests: median %.1f %%, p95 %.1f %%", len(late), 100*late[len(late)/2], 100*late[len(late)*95/100])
}

// messages returns the messages in the first bytes of a recorded request body.
func messages(t *testing.T, file string, bytes int) []conversation.Message {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(content, &body); err != nil {
		t.Fatal(err)
	}
	var list []conversation.Message
	for _, raw := range body.Messages {
		if bytes -= len(raw); bytes < 0 {
			break
		}
		message, err := anthropic.New().Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, message)
	}
	return list
}

// message returns the cl100k tokens of a message for the provider.
func (p *provider) message(message conversation.Message) int {
	const image, mark = 1300, 12
	sum := mark
	for _, block := range message.Blocks {
		sum += mark + p.count(strings.ToValidUTF8(block.Text, "")) + p.count(block.Name) + image*len(block.Media)
	}
	return sum
}
