package openaichat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/wiretest"
)

func codec() openaichat.Codec { return openaichat.New() }

func TestConformance(t *testing.T) {
	t.Parallel()
	wiretest.Run(t, codec(), samples())
}

func FuzzMessages(f *testing.F) { wiretest.Fuzz(f, codec(), samples()) }

func FuzzAnswers(f *testing.F) { wiretest.FuzzAnswers(f, codec(), samples()) }

func TestMessagesCarryNoMarkers(t *testing.T) {
	t.Parallel()

	raw := json.RawMessage(`{"role":"user","content":"a"}`)
	if marked := codec().Mark(raw, "1h"); string(marked) != string(raw) {
		t.Errorf("marked: %s", marked)
	}
}

func TestALongAnswerIsLetGoButItsUsageIsRead(t *testing.T) {
	t.Parallel()

	tap := codec().Tap(true)
	write := func(event string) { _, _ = fmt.Fprintf(tap, "data: %s\n\n", event) }
	part := strings.Repeat("x", 1<<20)
	for range wire.MaxAnswer/len(part) + 1 {
		write(`{"choices":[{"index":0,"delta":{"content":"` + part + `"}}]}`)
	}
	write(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	write(`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":99}}`)
	write(`[DONE]`)
	answer := tap.Answer()
	if answer.Messages != nil || !answer.Complete || answer.Usage.Output != 99 || answer.Usage.Prompt() != 5 {
		t.Errorf("%d messages, %+v", len(answer.Messages), answer.Usage)
	}
}
