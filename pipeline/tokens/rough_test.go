package tokens_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

func saying(text string) conversation.Message {
	return conversation.Message{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}}
}

// S17, B3: what is beyond any window is counted without merging, and not far off.
func TestRoughCountsAreCloseToExactOnes(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	for kind, text := range corpus(t) {
		exact, rough := counter.Message(saying(text)), counter.Rough(saying(text))
		off := float64(rough)/float64(exact) - 1
		t.Logf("%s: %d tokens, roughly %d (%+.1f %%)", kind, exact, rough, 100*off)
		if math.Abs(off) > 0.25 {
			t.Errorf("%s: %d tokens, roughly %d", kind, exact, rough)
		}
	}
}

// S17: the first 512 KiB of a message or a system prompt are counted exactly, in one block
// or in many, and nothing behind them.
func TestOnlyTheBeginningOfALargeMessageIsCountedExactly(t *testing.T) {
	t.Parallel()
	const exact = 512 << 10
	counter, random := newCounter(t), rand.New(rand.NewPCG(1, 2))
	var letters strings.Builder
	for letters.Len() < 2*exact {
		for range 63 {
			letters.WriteByte("qwertzuiopasdfghjklyxcvbnm"[random.IntN(26)])
		}
		letters.WriteByte('\n')
	}
	text := letters.String()
	exactly, roughly := counter.Message(saying(text[:exact])), counter.Rough(saying(text[exact:]))
	if all := counter.Rough(saying(text[:exact])); math.Abs(float64(all-exactly)) < 1000 {
		t.Fatalf("%d tokens and roughly %d: the two cannot be told apart", exactly, all)
	}

	two := saying(text[:exact])
	two.Blocks = append(two.Blocks, saying(text[exact:]).Blocks...)
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]int{
		"one block":     counter.Message(saying(text)),
		"two blocks":    counter.Message(two),
		"system prompt": counter.Fixed(quoted),
		"system block":  counter.Fixed(json.RawMessage(`[{"type":"text","text":` + string(quoted) + `}]`)),
	} {
		if math.Abs(float64(got-exactly-roughly)) > 20 { // what is around a message and a text
			t.Errorf("%s: %d tokens, want %d and %d", name, got, exactly, roughly)
		}
	}
	if counter.Count(text) == counter.Message(saying(text)) {
		t.Error("a large text of a message is counted exactly to its end")
	}
}
