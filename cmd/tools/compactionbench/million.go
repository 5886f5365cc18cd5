package compactionbench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
)

const (
	// millionWindow is a window far larger than every session.
	millionWindow = 1_000_000
	// longSession is the minimum of tokens in the largest prompt of a long session.
	longSession = 100_000
)

// Variant is a configuration of our policy.
type Variant struct {
	Name   string
	Change func(*ipc.Config)
}

// BreakEven returns the rule of rent or buy above a number of tokens.
func BreakEven(minContext int) Variant {
	return Variant{fmt.Sprintf("break-even above %dk", minContext/1000), func(config *ipc.Config) {
		config.Trigger, config.MinContext = ipc.TriggerBreakEven, minContext
	}}
}

// Windowed returns the rule of the window, with a window set by hand; 0 means the model's own.
func Windowed(window int) Variant {
	name := "window"
	if window > 0 {
		name = fmt.Sprintf("window of %dk by hand", window/1000)
	}
	return Variant{name, func(config *ipc.Config) { config.ContextWindow = ipc.Window(window) }}
}

// curve are the variants whose cost is compared with their fidelity.
func curve() []Variant {
	var variants []Variant
	for _, minContext := range []int{25_000, 50_000, 100_000, 200_000} {
		variants = append(variants, BreakEven(minContext))
	}
	for _, window := range []int{40_000, 64_000, 133_000, 267_000} {
		variants = append(variants, Windowed(window))
	}
	return variants
}

// with returns the pipeline of a variant.
func (b *Bench) with(variant Variant) pipeline.Config {
	config := b.Pipeline
	variant.Change(pipeline.Change[ipc.Config](&config))
	return config
}

// Vast holds the results of sessions in a window that they do not come near.
type Vast struct {
	Rows      []Row       `json:"rows"`
	Hindsight []Hindsight `json:"hindsight"`
}

// Condition is the prices and pace of a session.
type Condition struct {
	Prices Prices
	Pace   Pace
}

func conditions() []Condition {
	var all []Condition
	for _, prices := range []Prices{Anthropic(), AnthropicHour(), OpenAI()} {
		for _, pace := range []Pace{Warm(), WithGaps()} {
			all = append(all, Condition{prices, pace})
		}
	}
	return all
}

// Vast runs all policies and variants on the recorded sessions of a directory.
func (b *Bench) Vast(ctx context.Context, suite Suite) (*Vast, error) {
	files, err := filepath.Glob(filepath.Join(suite.Data, "transcripts", "*.anthropic.json"))
	if err != nil {
		return nil, fmt.Errorf("find transcripts: %w", err)
	}
	if suite.Quick {
		files = files[:min(3, len(files))]
	}
	found := make([]Vast, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		group.Go(func() error {
			talk, err := Recorded(file, millionWindow)
			if err != nil {
				return err
			}
			if suite.Note != nil {
				suite.Note(talk.Name + " in a window of a million")
			}
			found[i], err = b.vast(ctx, &talk, suite.Quick)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("window of a million: %w", err)
	}
	var all Vast
	for i := range found {
		all.Rows = append(all.Rows, found[i].Rows...)
		all.Hindsight = append(all.Hindsight, found[i].Hindsight...)
	}
	return &all, nil
}

// vast runs all policies and variants on a session; quickly, it runs only the rule of rent or buy, with a
// cache of five minutes.
func (b *Bench) vast(ctx context.Context, talk *Talk, quick bool) (Vast, error) {
	r, err := read(talk, b.counter)
	if err != nil {
		return Vast{}, err
	}
	if len(r.ends) == 0 {
		return Vast{}, errors.New(talk.Name + ": holds no request")
	}
	rule := BreakEven(pipeline.SettingsOf[ipc.Config](b.Pipeline).MinContext)
	left, err := cutsOf(ctx, r, b.with(rule))
	if err != nil {
		return Vast{}, err
	}
	var found Vast
	under := conditions()
	if quick {
		under = under[:2]
	}
	for i, under := range under {
		variants := []Variant{Windowed(0), rule}
		switch {
		case quick:
			variants = variants[1:]
		case i == 0:
			variants = slices.Concat(variants[:1], curve())
		}
		rows, err := b.charge(ctx, r, under, variants)
		if err != nil {
			return Vast{}, err
		}
		found.Rows = append(found.Rows, rows...)
		for j := range rows {
			if rows[j].Policy == rule.Name {
				found.Hindsight = append(found.Hindsight, r.hindsight(&rows[j].Bill, left, under, pipeline.SettingsOf[ipc.Config](b.Pipeline).MinContext))
			}
		}
	}
	return found, nil
}

// charge returns a row for each policy and variant. Under the conditions of the curve, it also counts which
// content of their prompts later turns take up.
func (b *Bench) charge(ctx context.Context, r *reading, under Condition, variants []Variant) ([]Row, error) {
	r.looksBack = under.Pace == Warm() && under.Prices == Anthropic()
	var rows []Row
	for _, name := range []string{NoCompression, Masking, ContextEditing, SelfCompacting, SelfAt150k} {
		rows = append(rows, modelled(r, name, under.Prices, under.Pace))
	}
	for _, variant := range variants {
		ours, err := proxy(ctx, r, b.with(variant), under.Prices, under.Pace)
		if err != nil {
			return nil, err
		}
		row := ours.row(r)
		row.Policy, row.Failures = variant.Name, row.Invalid+row.TooLong
		rows = append(rows, row)
	}
	none := rows[0].Bill
	largest := int(r.tokens(r.fixed.Tokens + r.sums[len(r.messages)]))
	for i := range rows {
		row := &rows[i]
		row.Session, row.Window, row.Prices, row.Pace, row.IsLong = r.talk.Name, r.talk.Window, under.Prices.Name, under.Pace.Name, largest >= longSession
		row.None, row.Worst = row.against(none), row.worst(&none)
	}
	return rows, nil
}
