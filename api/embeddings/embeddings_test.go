package embeddings

import (
	"testing"

	"palimpsest/pipeline/tokens"
)

func TestEmbeddingsCostWhatTheirProviderLists(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		model  string
		tokens int
		want   int64
	}{{"text-embedding-3-small", 1, 1}, {"text-embedding-3-small", 1_000_000, 20_000}, {"text-embedding-3-large", 1_000_000, 130_000}, {"text-embedding-ada-002", 1_000_000, 100_000}, {"own", 5, 0}} {
		if got := costOf(test.model, test.tokens, tokens.Overrides{}); got != test.want {
			t.Errorf("%d tokens of %s cost %d, want %d", test.tokens, test.model, got, test.want)
		}
	}
}
