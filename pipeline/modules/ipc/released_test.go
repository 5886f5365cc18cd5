package ipc

import (
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// A new message of a person ends the wait after an attempt in vain only if their previous one has what an epoch
// must free, both in the model's tokens: a tenth of 50,000.
func TestPreviousMessageIsReleasedByItsSizeInTokensOfTheModel(t *testing.T) {
	t.Parallel()
	const window, position = 50_000, 2
	var config pipeline.Config
	*pipeline.Change[Config](&config) = Config{MinClear: 0.1}
	for name, one := range map[string]struct {
		previous int // tokens of the estimate
		factor   float64
		isNew    bool
		want     bool
	}{
		"large enough":                       {5_000, 1, true, true},
		"one token less":                     {4_999, 1, true, false},
		"large enough in the model's tokens": {4_000, 1.25, true, true},
		"too small in the model's tokens":    {6_000, 0.75, true, false},
		"with no message after it":           {5_000, 1, false, false},
	} {
		digests := []conversation.Digest{
			{Role: conversation.User, Flags: conversation.HasTyped, Tokens: one.previous}, {Role: conversation.Assistant, Tokens: 9_000},
			{Role: conversation.User, Flags: conversation.HasResult, Tokens: 9_000},
		}
		if one.isNew {
			digests[position].Flags = conversation.HasTyped
		}
		exchange := &pipeline.View{
			Config: config, Conversation: pipeline.Conversation{Digests: digests},
			Lane: pipeline.Lane{Heat: session.CacheState{Position: position}}, Limits: pipeline.Limits{Limit: window, Factor: one.factor},
		}
		if got := released(exchange, 2*window); got != one.want {
			t.Errorf("%s: %t, want %t", name, got, one.want)
		}
	}
}
