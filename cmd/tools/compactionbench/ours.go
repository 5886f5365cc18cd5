package compactionbench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/tokens"
)

// epochsWatched is the epoch after which survival is measured.
const epochsWatched = 30

// proxied is a talk that went through the proxy's pipeline.
type proxied struct {
	bill      Bill
	epochs    int
	cold      int // epochs that found the provider's cache cold, so that they broke no prefix
	invalid   int
	faults    []string // the provider's first complaints
	intact    Share    // newest messages sent unchanged
	originals Share    // archived messages that come back unchanged
	recall    pipelinetest.Recall
	last      []byte // last body
	watched   survival
	elapsed   []time.Duration
	untouched Share  // requests sent unchanged
	after     []int  // tokens of the prompt after each epoch
	levels    [4]int // turns at each level in the last request
}

// proxy sends a talk through the pipeline.
func proxy(ctx context.Context, r *reading, config pipeline.Config, prices Prices, pace Pace) (*proxied, error) {
	priced := r.model
	priced.Price = prices.of(priced.Price)
	run, err := replay.New(replay.Config{
		Format: r.talk.Format, Pipeline: config, Window: r.talk.Window, Clock: pace.At, TTL: prices.TTL, Automatic: prices.Automatic, Models: []tokens.Model{priced},
		Validate: r.talk.validator(r.counter, r.model.TokensPerO200k),
	})
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", r.talk.Name, err)
	}
	p := &proxied{}
	var last replay.Step
	_, err = run.Run(ctx, r.talk.Body, func(step replay.Step) error {
		last = step
		return p.add(r, prices, &step)
	})
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", r.talk.Name, err)
	}
	p.last, p.levels = last.Sent.Body, last.Levels
	if last.Sent.Lane != nil {
		for index, original := range run.Originals(last.Sent.Lane.ID) {
			p.originals = p.originals.with(sha256.Sum256(original) == sha256.Sum256(r.messages[index].raw))
		}
	}
	slices.Sort(p.elapsed)
	return p, nil
}

// add adds one request.
func (p *proxied) add(r *reading, prices Prices, step *replay.Step) error {
	p.bill.add(prices, r.tokens(step.Sent.Use.Read), r.tokens(step.Sent.Use.Write), 0)
	if step.Bust {
		p.bill.Busts++
	}
	p.bill.requested()
	if r.looksBack {
		p.bill.Held = p.bill.Held.and(r.held(step.Number-1, sightOf(string(step.Sent.Body)).has))
	}
	p.bill.measure(float64(step.Sent.Use.Read+step.Sent.Use.Write) / r.limit)
	if step.Invalid != "" {
		p.invalid++
		if len(p.faults) < 3 {
			p.faults = append(p.faults, fmt.Sprintf("request %d: %s", step.Number, step.Invalid))
		}
	}
	newest := r.messages[step.Messages-1].raw
	p.intact = p.intact.with(bytes.LastIndex(step.Sent.Body, newest) >= 0)
	p.untouched = p.untouched.with(step.Sent.Projection == nil)
	p.elapsed = append(p.elapsed, step.Sent.Elapsed)
	if step.Sent.Report.Archived == 0 {
		return nil
	}
	p.epochs++
	if step.Sent.Use.Read == 0 {
		p.cold++
	}
	p.after = append(p.after, step.After)
	recall, err := pipelinetest.RecallOf(pipelinetest.Shortened{
		Codec: r.codec, Session: r.names, Sent: step.Messages, Turns: r.turns, Projection: step.Sent.Projection, Since: step.Messages,
	}, r.counter.Count)
	if err != nil {
		return fmt.Errorf("recall: %w", err)
	}
	p.recall = p.recall.Add(recall)
	if p.epochs == epochsWatched {
		p.watched = r.survives(step.Sent.Body, step.Messages)
	}
	return nil
}

// percentile returns a percentile of the requests' times.
func (p *proxied) percentile(percent int) time.Duration {
	if len(p.elapsed) == 0 {
		return 0
	}
	return p.elapsed[min(len(p.elapsed)-1, len(p.elapsed)*percent/100)]
}
