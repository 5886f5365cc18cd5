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

// cuts are what a compaction with each request of a talk would leave, in the model's
// tokens; 0 where none is worth making, or the prompt is too small to be touched.
type cuts []float64

// cutsOf plans a compaction of the originals with each request that is above minContext.
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

// exchange returns the first length messages of a talk as a request that a lane without
// a past sends.
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
	exchange.Chain = session.Chain(scope, session.Hint{}, digests)
	return exchange, nil
}

// optimum returns what the prompts of a talk cost up to each request, in tokens of plain
// input, where compactions happen at the best moments in hindsight had the talk ended there,
// of prompts above floor tokens. It is dynamic programming: cheapest[j] is the least that all
// requests so far can have cost where the last cut was made with request j, and
// cheapest[len(ends)] where none was.
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
	Optimum float64 `json:"optimum"` // of the moments at which the rule may act: above minContext
	Free    float64 `json:"free"`    // of all moments
	Worst   float64 `json:"worst"`   // times the optimum where the session ends after the worst of its requests
}

// hindsight sets what a talk cost after each request beside the best moments.
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

// Hindsight returns how what the rule of rent or buy costs on a talk stands to the best
// moments, under each condition.
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

// Ratio returns how many times the optimum the rule costs.
func (h *Hindsight) Ratio() float64 { return h.Cost / h.Optimum }

// RatioFree returns how many times the rule costs what the best moments would, were
// prompts below minContext not left alone.
func (h *Hindsight) RatioFree() float64 { return h.Cost / h.Free }
