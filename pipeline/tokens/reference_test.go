package tokens_test

import (
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"palimpsest/pipeline/tokens"
)

// reference returns an independent tokenizer of a vocabulary: slow, and right.
func reference(t testing.TB, vocabulary string) func(string) int {
	t.Helper()
	useEmbedded()
	encoding, err := tiktoken.GetEncoding(vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) int { return len(encoding.EncodeOrdinary(text)) }
}

// useEmbedded makes the reference read its vocabularies from memory, not from the network.
var useEmbedded = sync.OnceFunc(func() { tiktoken.SetBpeLoader(loader.NewOfflineLoader()) })

func newCounter(t testing.TB) *tokens.Counter {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return counter
}
