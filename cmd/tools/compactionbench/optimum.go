package compactionbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
)

// cuts are the prompt sizes after a compaction with each request of a talk, in the model's tokens; 0 if a
// compaction is not worthwhile, or the prompt is too small.
type cuts []float64

// cutsOf plans a compaction of the originals with each request above minContext.
func cutsOf(ctx context.Context, r *reading, config pipeline.Config) (cuts, error) {
	module := ipc.New(r.counter.Message).Remembering()
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

// exchange returns the first length messages of a talk as a request from a lane without history.
func (r *reading) exchange(config pipeline.Config, length int) (*pipeline.View, error) {
	request, err := r.codec.Request(r.body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	digests := r.digests[:length]
	scope := session.Scope{Format: r.codec.Format()}
	exchange := &pipeline.View{
		Scope: scope, Config: config, Request: request, Model: r.model,
		Conversation: pipeline.NewConversation(r.codec, r.body, digests),
		Limits:       pipeline.Limits{Limit: r.model.InputLimit(request.MaxOutput), Factor: r.model.TokensPerO200k, Fixed: r.fixed.Tokens},
		Lane:         pipeline.Lane{NextProjection: 1},
		CountText:    r.counter.Count, Committer: pipeline.Forgetful{},
	}
	exchange.Conversation.Chain = session.Chain(scope, session.Hint{}, digests)
	return exchange, nil
}

// optimum returns the cost of a talk's prompts up to each request, in tokens of plain input, with
// compactions at the best moments in hindsight had the talk ended there. It compacts only prompts above
// floor tokens. It is dynamic programming: cheapest[j] is the minimum cost of all requests so far with the
// last cut at request j, and cheapest[len(ends)] without a cut.
func (r *reading) optimum(left cuts, prices Prices, pace Pace, floor float64) []float64 {
	n := len(r.ends)
	cheapest, optima := make([]float64, n+1), make([]float64, n)
	for j := range n {
		cheapest[j] = math.Inf(1)
	}
	for request := range r.ends {
		isWarm := request > 0 && (prices.TTL == 0 || pace.At(request).Sub(pace.At(request-1)) < prices.TTL)
		best := math.Inf(1)
		for j := range cheapest {
			if r.since(left, j, request) > floor {
				best = min(best, cheapest[j])
			}
		}
		for j := range cheapest {
			if !math.IsInf(cheapest[j], 1) {
				cheapest[j] += charged(prices, r.since(left, j, request-1), r.since(left, j, request), isWarm)
			}
		}
		if left[request] > 0 {
			cheapest[request] = best + charged(prices, r.tokens(r.fixed.Tokens), left[request], isWarm)
		}
		optima[request] = slices.Min(cheapest)
	}
	return optima
}

// since returns the tokens of a request's prompt with the last cut at request j; j is len(left) without a
// cut.
func (r *reading) since(left cuts, j, request int) float64 {
	if request < 0 {
		return 0
	}
	if j == len(left) {
		return r.tokens(r.fixed.Tokens + r.sums[r.ends[request]])
	}
	return left[j] + r.tokens(r.sums[r.ends[request]]-r.sums[r.ends[j]])
}

// charged returns the cost of a prompt that shares a number of tokens with the last one.
func charged(prices Prices, shared, size float64, isWarm bool) float64 {
	if !isWarm {
		return prices.Write * size
	}
	return prices.Read*min(shared, size) + prices.Write*max(0, size-shared)
}

// Hindsight compares a session's cost by the rule of rent or buy with that of the best moments in
// hindsight.
type Hindsight struct {
	Session string  `json:"session"`
	Prices  string  `json:"prices"`
	Pace    string  `json:"pace"`
	Cost    float64 `json:"cost"`
	Optimum float64 `json:"optimum"` // with only the moments at which the rule may act: above minContext
	Free    float64 `json:"free"`    // of all moments
	Worst   float64 `json:"worst"`   // as a multiple of the optimum, if the session ends after its worst request
}

// hindsight compares the cost of a talk after each request with that of the best moments.
func (r *reading) hindsight(bill *Bill, left cuts, under Condition, minContext int) Hindsight {
	optima, free := r.optimum(left, under.Prices, under.Pace, float64(minContext)), r.optimum(left, under.Prices, under.Pace, 0)
	last := len(optima) - 1
	found := Hindsight{
		Session: r.talk.Name, Prices: under.Prices.Name, Pace: under.Pace.Name, Cost: bill.Cost, Optimum: optima[last], Free: free[last],
	}
	for i, optimum := range optima {
		found.Worst = max(found.Worst, bill.sofar[i]/optimum)
	}
	return found
}

// Hindsight compares the cost of a talk by the rule of rent or buy with that of the best moments, under
// each condition.
func (b *Bench) Hindsight(ctx context.Context, talk *Talk, under ...Condition) ([]Hindsight, error) {
	r, err := read(talk, b.counter)
	if err != nil {
		return nil, err
	}
	config := b.with(BreakEven(pipeline.SettingsOf[ipc.Config](b.Pipeline).MinContext))
	left, err := cutsOf(ctx, r, config)
	if err != nil {
		return nil, err
	}
	found := make([]Hindsight, len(under))
	for i, one := range under {
		ours, err := proxy(ctx, r, config, one.Prices, one.Pace)
		if err != nil {
			return nil, err
		}
		found[i] = r.hindsight(&ours.bill, left, one, pipeline.SettingsOf[ipc.Config](b.Pipeline).MinContext)
	}
	return found, nil
}

// Ratio returns the rule's cost as a multiple of the optimum.
func (h *Hindsight) Ratio() float64 { return h.Cost / h.Optimum }

// RatioFree returns the rule's cost as a multiple of the best moments' cost if prompts below minContext
// could be compacted too.
func (h *Hindsight) RatioFree() float64 { return h.Cost / h.Free }
