package compactionbench

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// apart are recorded sessions excluded from tuning, so that only their figures show whether a change helps
// elsewhere.
var apart = []string{"cc-joined-bc", "cc-joined-f0", "cc-single-f4", "cc-single-ec", "cc-manysmall-18", "openhands-multiswe-2"}

// fixedTokens is the size of some clients' system prompt and tools, in o200k tokens: Claude Code's have
// about 25,000 of the model's.
const fixedTokens = 19_000

// Forgotten holds the results for some sessions in one window.
type Forgotten struct {
	Window  int
	Fixed   int  // o200k tokens added before the conversation
	IsApart bool // of the sessions excluded from tuning
	Forgetting
}

// AllForgotten holds a Forgotten for each window, each fixed part, and both parts of the sessions.
type AllForgotten []Forgotten

// Forgotten measures on the recorded sessions of a directory.
func (b *Bench) Forgotten(ctx context.Context, suite Suite) (AllForgotten, error) {
	files, err := filepath.Glob(filepath.Join(suite.Data, "transcripts", "*.anthropic.json"))
	if err != nil {
		return nil, fmt.Errorf("find transcripts: %w", err)
	}
	var all AllForgotten
	for _, window := range []int{smallWindow, bigWindow} {
		for _, fixed := range []int{0, fixedTokens} {
			for _, isApart := range []bool{false, true} {
				one := Forgotten{Window: window, Fixed: fixed, IsApart: isApart}
				if suite.Note != nil {
					suite.Note(fmt.Sprintf("what is forgotten in %d behind %d", window, fixed))
				}
				if err := b.forgetAll(ctx, files, &one); err != nil {
					return nil, err
				}
				all = append(all, one)
			}
		}
	}
	return all, nil
}

// forgetAll sums the sessions of one part.
func (b *Bench) forgetAll(ctx context.Context, files []string, sum *Forgotten) error {
	found := make([]*Forgetting, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if slices.Contains(apart, name) != sum.IsApart {
			continue
		}
		group.Go(func() error {
			talk, err := Recorded(file, sum.Window)
			if err == nil {
				talk, err = talk.WithFixed(sum.Fixed)
			}
			if err == nil {
				found[i], err = b.Forget(ctx, &talk, Anthropic(), Warm())
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, one := range found {
		if one != nil {
			sum.Add(one)
		}
	}
	return nil
}

// Markdown returns a table.
func (all AllForgotten) Markdown() string {
	var text strings.Builder
	text.WriteString("| window | fixed part | sessions | compactions | word for word p10 / p50 / p90 | no turn at L1 or L2 | identifiers | window of equal size | not repeated | window | edits | window | typed | second newest typed | open tasks | recoveries per 100 requests | window | cost | with recoveries | busts against the client's |\n")
	text.WriteString("|" + strings.Repeat(" --- |", 20) + "\n")
	for i := range all {
		one := &all[i]
		part := "tuned on"
		if one.IsApart {
			part = "kept apart"
		}
		ours, window := &one.Ours, &one.Sliding
		fmt.Fprintf(&text, "| %d | %d | %s | %d | %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.1f | %.1f | %+.1f %% | %+.1f %% | %.2f |\n",
			one.Window, one.Fixed, part, one.Compactions, one.verbatim(), one.Cliffs, ours.Names, window.Names, ours.Unrepeated, window.Unrepeated,
			ours.Edits, window.Edits, ours.Typed, ours.Second, ours.Tasks, one.perHundred(ours), one.perHundred(window),
			one.Bill.against(one.Itself), 100*((one.Bill.Cost+one.Ours.Recovery)/(one.Itself.Cost+one.Client.Recovery)-1), float64(one.Bill.Busts)/float64(max(1, one.Itself.Busts)))
	}
	return text.String()
}

// verbatim returns quantiles of the number of turns that compactions left word for word: 10, 50 and 90
// percent.
func (f *Forgetting) verbatim() string {
	if len(f.Verbatim) == 0 {
		return "–"
	}
	turns := slices.Sorted(slices.Values(f.Verbatim))
	at := func(percent int) int { return turns[min(len(turns)-1, len(turns)*percent/100)] }
	return fmt.Sprintf("%d / %d / %d", at(10), at(50), at(90))
}

func (f *Forgetting) perHundred(kept *Kept) float64 {
	return 100 * float64(kept.Recoveries) / float64(max(1, f.Requests))
}
