package ipc

import (
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// The rent is what the requests since the last compaction read above what the next would
// leave: it is bounded by where that one ended, by what it left, and by what would be left.
func TestRentCountsTheRequestsSinceTheLastCompaction(t *testing.T) {
	t.Parallel()

	const user, assistant = conversation.User, conversation.Assistant
	alternating := make([]conversation.Role, 14)
	for i := range alternating {
		alternating[i] = []conversation.Role{user, assistant}[i%2]
	}
	// Answers of three items each, as the Responses format has them.
	inItems := []conversation.Role{user, assistant, assistant, assistant, user, assistant, assistant, assistant, user}
	for name, one := range map[string]struct {
		roles      []conversation.Role // of messages of 1,000 tokens each
		size, left float64
		projection *session.Projection
		requests   int
		rent       float64
	}{
		"no compaction so far":                 {alternating, 14_000, 5_000, nil, 4, (13 + 11 + 9 + 7 - 4*5) * 1000},
		"a system prompt before them":          {alternating, 34_000, 5_000, nil, 7, (33 + 31 + 29 + 27 + 25 + 23 + 21 - 7*5) * 1000},
		"not before the last compaction":       {alternating, 20_000, 2_000, &session.Projection{After: 14_000, Covers: 4}, 3, (19 + 17 + 15 - 3*2) * 1000},
		"not for what the projection covers":   {alternating, 30_000, 2_000, &session.Projection{After: 2_000, Covers: 10}, 2, (29 + 27 - 2*2) * 1000},
		"not where it read less than is left":  {alternating, 20_000, 18_000, &session.Projection{After: 2_000, Covers: 4}, 1, 1000},
		"nothing right after the compaction":   {alternating, 14_000, 2_000, &session.Projection{After: 14_000, Covers: 4}, 0, 0},
		"an answer of three items is one read": {inItems, 9_000, 1_000, nil, 1, 4_000},
		"and the newest message is not read":   {inItems[:5], 25_000, 1_000, nil, 1, 20_000},
	} {
		digests := make([]conversation.Digest, len(one.roles))
		for i, role := range one.roles {
			digests[i] = conversation.Digest{Role: role, Tokens: 1000}
		}
		for _, rate := range []float64{1, 1.5} {
			projection := one.projection
			if projection != nil {
				projection = &session.Projection{After: int(rate * float64(projection.After)), Covers: projection.Covers}
			}
			b := balance{read: 0.5, rate: rate, size: rate * one.size, left: rate * one.left}
			b.add(&pipeline.View{Conversation: pipeline.Conversation{Digests: digests}, Lane: pipeline.Lane{Projection: projection}})
			if want := 0.5 * rate * one.rent; b.requests != one.requests || b.rent != want {
				t.Errorf("%s, at %.1f: %d requests paid %.0f, want %d and %.0f", name, rate, b.requests, b.rent, one.requests, want)
			}
		}
	}
}
