package compactionbench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
)

// cuts are what a compaction with each request of a talk would leave, in the model's
// tokens; 0 where none is worth making, or the prompt is too small to be touched.
type cuts []float64

// cutsOf plans a compaction of the originals with each request that is above minContext.
func cutsOf(ctx context.Context, r *reading, config pipeline.Config) (cuts, error) {
	module := ipc.New(r.counter).Remembering()
	left := make(cuts, len(r.ends))
	for request, length := range r.ends {
		exchange, err := r.exchange(config, length)
		if err != nil {
			return nil, err
		}
		plan, err := module.Plan(ctx, exchange)
		switch {
		case errors.Is(err, pipeline.ErrNoPlan):
		case err != nil:
			return nil, fmt.Errorf("plan request %d: %w", request, err)
		default:
			left[request] = float64(plan.Projection.After)
		}
	}
	return left, nil
}

// exchange returns the first length messages of a talk as a request that a lane without
// a past sends.
func (r *reading) exchange(config pipeline.Config, length int) (*pipeline.Exchange, error) {
	request, err := r.codec.Request(r.body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	digests := r.digests[:length]
	return &pipeline.Exchange{
		Scope: session.Scope{Format: r.codec.Format()}, Config: config, Codec: r.codec, Request: request, Body: r.body,
		Model: r.model, Limit: r.model.InputLimit(request.MaxOutput), Factor: r.model.TokensPerO200k,
		Fixed: r.fixed.Tokens, Digests: digests, Turns: conversation.Turns(digests),
		Chain: session.Chain(session.Scope{Format: r.codec.Format()}, session.Hint{}, digests), NextProjection: 1,
		CountText: func(text string) int { return r.counter.Count(text) },
	}, nil
}

// optimum returns what the prompts of a talk cost, in tokens of plain input, where
// compactions happen at the best moments in hindsight, by dynamic programming: cheapest[j]
// is the least that all requests so far can have cost where the last cut was made with
// request j, and cheapest[len(ends)] where none was.
func (r *reading) optimum(left cuts, prices Prices, pace Pace) float64 {
	n := len(r.ends)
	cheapest := make([]float64, n+1)
	for j := range n {
		cheapest[j] = math.Inf(1)
	}
	for request := range r.ends {
		isWarm := request > 0 && (prices.TTL == 0 || pace.At(request).Sub(pace.At(request-1)) < prices.TTL)
		best := math.Inf(1)
		for j := range cheapest {
			best = min(best, cheapest[j])
		}
		for j := range cheapest {
			if !math.IsInf(cheapest[j], 1) {
				cheapest[j] += charged(prices, r.since(left, j, request-1), r.since(left, j, request), isWarm)
			}
		}
		if left[request] > 0 {
			cheapest[request] = best + charged(prices, r.tokens(r.fixed.Tokens), left[request], isWarm)
		}
	}
	best := cheapest[n]
	for _, one := range cheapest {
		best = min(best, one)
	}
	return best
}

// since returns the tokens of a request's prompt where the last cut was made with request
// j, which is no request where there was none.
func (r *reading) since(left cuts, j, request int) float64 {
	if request < 0 {
		return 0
	}
	if j == len(left) {
		return r.tokens(r.fixed.Tokens + r.sums[r.ends[request]])
	}
	return left[j] + r.tokens(r.sums[r.ends[request]]-r.sums[r.ends[j]])
}

// charged returns what a prompt costs of which so many tokens were in the last one.
func charged(prices Prices, shared, size float64, isWarm bool) float64 {
	if !isWarm {
		return prices.Write * size
	}
	return prices.Read*min(shared, size) + prices.Write*max(0, size-shared)
}

// Hindsight is how a session's cost by the rule of rent or buy stands to that of the best
// moments in hindsight.
type Hindsight struct {
	Session string  `json:"session"`
	Prices  string  `json:"prices"`
	Pace    string  `json:"pace"`
	Cost    float64 `json:"cost"`
	Optimum float64 `json:"optimum"`
}

// Ratio returns how many times the optimum the rule costs.
func (h *Hindsight) Ratio() float64 { return h.Cost / h.Optimum }
