package preview

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
)

// Figures are the result of settings on recorded conversations. Tokens are the models', money is in
// millionths of a US dollar at list prices, for prompts alone.
type Figures struct {
	Sessions int // examined
	Requests int

	Epochs   int   // steps in which a prompt was compressed
	Rewrites int   // of them, those that a provider had to write to a warm cache again
	Received int64 // tokens of all prompts as the clients sent them
	Sent     int64 // and as compressed
	Verbatim int64 // of Received, those sent word for word; see Comparison.HasLevels
	AtL3     int64 // of Received, those sent as an outline; see Comparison.HasLevels
	Deepest  int   // deepest level of all parts
	TooLong  int   // sessions with a prompt that the model would refuse for its length
	Cost     int64 // of the compressed prompts
	Net      int64 // cost of the prompts as the clients could have sent them, less the cost of the compressed ones: see cost.Baseline
	Reach    int   // requests that could not have been sent unchanged; they don't count in Net

	// The part of Received and Sent in requests that count as Reach. It is not a saving.
	ReachReceived, ReachSent int64
}

// Saved returns how many tokens of prompts that could have been sent unchanged are not sent.
func (f *Figures) Saved() int64 { return f.Sendable() - (f.Sent - f.ReachSent) }

// Sendable returns the tokens of the prompts that could have been sent unchanged: the basis of
// Saved.
func (f *Figures) Sendable() int64 { return f.Received - f.ReachReceived }

// add adds the figures of other sessions.
func (f *Figures) add(other Figures) {
	f.Sessions += other.Sessions
	f.Requests += other.Requests
	f.Epochs += other.Epochs
	f.Rewrites += other.Rewrites
	f.Received += other.Received
	f.Sent += other.Sent
	f.Verbatim += other.Verbatim
	f.AtL3 += other.AtL3
	f.Deepest = max(f.Deepest, other.Deepest)
	f.TooLong += other.TooLong
	f.Cost += other.Cost
	f.Net += other.Net
	f.Reach += other.Reach
	f.ReachReceived += other.ReachReceived
	f.ReachSent += other.ReachSent
}

// Session is the result of settings on one recorded conversation.
type Session struct {
	Figures

	ID uuid.UUID // zero in a sample

	// The largest prompt's share of its window, in thousandths: as the client sent it, and as
	// compressed. 0 if the window is unknown.
	FullBefore, FullSent int

	// How many identifiers its turns reuse from earlier ones, and how many of these the prompts
	// before contained. Again is how many messages the model would have to get again for the others,
	// each once between compactions. Only a replay of the originals sets them.
	TakenUp, Held, Again int
}

// each returns the result of a config on each of the recorded conversations, some at the same time.
// Lanes without a known window count as sessions, with the recorded tokens.
func each(ctx context.Context, config pipeline.Config, lookup func(name string) tokens.Model, recorded []session.Recorded, atOnce int) ([]Session, error) {
	sessions := make([]Session, len(recorded))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range recorded {
		group.Go(func() error {
			lane, err := newLane(config, lookup(recorded[i].Model), &recorded[i])
			if err != nil {
				return err
			}
			sessions[i], err = lane.run(ctx)
			sessions[i].ID = recorded[i].Session
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	return sessions, nil
}

func sum(sessions []Session) Figures {
	var all Figures
	for _, one := range sessions {
		all.add(one.Figures)
	}
	return all
}

// Actual returns the recorded figures of conversations: the result of the settings at the time. Prompts cost
// what remains of the requests' cost without the list price of their answers.
func Actual(lookup func(name string) tokens.Model, recorded []session.Recorded) Figures {
	var all Figures
	for i := range recorded {
		one, price := Figures{Sessions: 1, Requests: len(recorded[i].Requests)}, lookup(recorded[i].Model).Price
		for _, sent := range recorded[i].Requests {
			one.Cost += max(0, sent.Cost-int64(float64(sent.Output)*price.Of(sent.After).Output))
			one.Received += int64(sent.Before)
			one.Sent += int64(sent.After)
			one.Net += sent.Net
			if sent.Reach {
				one.Reach++
				one.ReachReceived += int64(sent.Before)
				one.ReachSent += int64(sent.After)
			}
			if sent.IsEpoch {
				one.Epochs++
			}
			if sent.Rewrote {
				one.Rewrites++
			}
			if sent.Limit > 0 && sent.After > sent.Limit {
				one.TooLong = 1
			}
		}
		all.add(one)
	}
	return all
}

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
