package preview

import (
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// The parameters of the bundled sample: invented average sessions of coding agents, the same every
// time.
const (
	sampleModel  = "claude-sonnet-4-5"
	sampleWindow = 200_000
	sampleFixed  = 18_000 // tokens of system prompt and tools
)

// sample returns conversations for a workspace with too few of its own.
func sample() []session.Recorded {
	random := rand.New(rand.NewPCG(40, 7)) //nolint:gosec // the same every time
	results := []int{40, 90, 200, 350, 600, 900, 1600, 2800, 5200, 9000}
	var recorded []session.Recorded
	for _, turns := range []int{40, 90, 160, 240, 320, 420} {
		one := session.Recorded{Session: uuid.New(), Lane: uuid.New(), Model: sampleModel, TTL: session.ShortTTL}
		at := time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)
		size := sampleFixed
		add := func(role conversation.Role, flags conversation.Flags, tokens int) {
			one.Messages = append(one.Messages, session.Counted{Role: role, Flags: flags, Tokens: tokens})
			size += tokens
		}
		for turn := range turns {
			if turn%12 == 0 {
				add(conversation.User, conversation.HasTyped, 20+random.IntN(180))
			}
			one.Requests = append(one.Requests, session.Sent{At: at, Position: len(one.Messages), Before: size, Limit: sampleWindow})
			add(conversation.Assistant, conversation.HasCall, 60+random.IntN(240))
			add(conversation.User, conversation.HasResult, results[random.IntN(len(results))])
			at = at.Add(time.Duration(8+random.IntN(25)) * time.Second)
			if turn%45 == 44 {
				at = at.Add(20 * time.Minute) // a pause of the person
			}
		}
		recorded = append(recorded, one)
	}
	return recorded
}
