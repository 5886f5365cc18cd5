package preview

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
)

// Figures are what settings make of recorded conversations. Tokens are the models',
// money is in millionths of a US dollar at list prices, for prompts alone.
type Figures struct {
	Sessions int // that were looked at
	Requests int

	Epochs   int   // steps in which a prompt was compressed
	Rewrites int   // of them, those that a provider had to write to a warm cache again
	Received int64 // tokens of all prompts as the clients sent them
	Sent     int64 // and as they would go out
	Verbatim int64 // of Received, those that would go out word for word; of what was recorded not known
	AtL3     int64 // of Received, those that would go out as one line a block; of what was recorded not known
	Deepest  int   // deepest level that anything reached
	TooLong  int   // sessions with a prompt that the model would refuse for its length
	Cost     int64 // what the prompts would cost as they would go out; of what was recorded not known
	Net      int64 // what the prompts would cost as the clients could have sent them, less what they cost: see cost.Baseline
	Reach    int   // requests that could not have been sent as they came; none of Net is theirs

	// Of Received and Sent, those of requests that count as Reach. They are no savings.
	ReachReceived, ReachSent int64
}

// Saved returns how many tokens would not be sent of prompts that could have been sent as they came.
func (f *Figures) Saved() int64 { return f.Sendable() - (f.Sent - f.ReachSent) }

// Sendable returns the tokens of the prompts that could have been sent as they came: what Saved is a share of.
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

// Session is what settings make of one recorded conversation.
type Session struct {
	Figures

	// How full the fullest prompt makes its window, in thousandths: as the client sent it,
	// and as it would go out. 0 where no window is known.
	FullBefore, FullSent int

	// How many identifiers its turns take up from earlier ones, and how many of these the
	// prompts before had. Only a replay of the originals knows.
	TakenUp, Held int
}

// each returns what a config would have made of each of the recorded conversations, some
// at the same time. Lanes without a request whose window is known count as sessions and
// with what was sent.
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

// Actual returns what was recorded of conversations: what the settings of then made of
// them.
func Actual(recorded []session.Recorded) Figures {
	var all Figures
	for i := range recorded {
		one := Figures{Sessions: 1, Requests: len(recorded[i].Requests)}
		for _, sent := range recorded[i].Requests {
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
			if sent.Limit > 0 && sent.After > sent.Limit {
				one.TooLong = 1
			}
		}
		all.add(one)
	}
	return all
}
