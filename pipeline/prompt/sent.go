package prompt

import (
	"cmp"
	"math"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Sent keeps the parts of a prompt that are needed after sending. It drops the body so that its memory is
// free while the answer streams.
type Sent struct {
	Lane     *session.Lane // nil after a store failure
	Scope    session.Scope
	Head     conversation.Hash // link of the history after the request's last message
	Position int               // messages in the request

	// AsksUsage is the prompt's AsksUsage.
	AsksUsage bool

	// Broken says that the answer ended early. The reported usage is still billed, but nothing is learned
	// from it.
	Broken bool

	// Summarizes says that the workspace has models write summaries of its lanes.
	Summarizes bool

	size    sentSize
	stores  bool // the provider stores the answer
	limit   int  // maximum prompt tokens; 0 if unknown
	most    int  // maximum answer tokens; 0 if the request has no limit
	isNear  bool // the prompt may be too long although it should fit
	account account
	cache   sentCache
}

// sentSize holds the estimates to compare with the prompt size that the provider reports.
type sentSize struct {
	isWhole  bool // the body holds all of the prompt
	model    tokens.Model
	anchor   session.Anchor // without the token count that the provider will report
	estimate int            // o200k tokens of the prompt as sent
}

// sentCache holds the state for learning about the provider's cache of a prompt, and for planning an epoch
// once the cache expires.
type sentCache struct {
	heat    session.CacheState
	life    life
	idle    int               // tokens above which an epoch may be planned ahead
	outline *pipeline.Outline // input of the plan; nil if absent
}

// Sent notes that the prompt has been sent and returns the data needed from then on.
func (p *Prompt) Sent() Sent {
	exchange := p.Exchange
	length := len(exchange.Conversation.Digests)
	sent := Sent{
		Lane: p.Lane, Scope: exchange.Scope, Head: exchange.Conversation.Chain[length], Position: length, AsksUsage: p.AsksUsage,
		size: sentSize{
			isWhole: !exchange.Request.Refers && (exchange.Request.ReadOnly == "" || exchange.Request.ReadOnly == bypass), model: exchange.Model,
			estimate: exchange.Estimate(exchange.Lane.Projection),
			anchor:   session.Anchor{Position: length, Fixed: exchange.Limits.Fixed, Model: exchange.Request.Model, Inserted: exchange.Inserted(exchange.Lane.Projection)},
		},
		stores: wire.Stores(exchange.Body), limit: exchange.Limits.Limit, most: exchange.Request.MaxOutput, isNear: p.MayBeTooLong(),
		account: p.account, Summarizes: pipeline.SettingsOf[ipc.Config](exchange.Config).LLMCompression != (ipc.LLMCompression{}),
	}
	sent.size.anchor.Projection, sent.size.anchor.Replaced = number(&exchange.Lane), exchange.Lane.Projection.Tokens()
	p.wentOut(&sent)
	return sent
}

// bytesPerToken is the approximate number of answer bytes per token.
const bytesPerToken = 4

// Metered returns the usage of an answer without a complete usage report: the reported values, and estimates
// for the rest.
func (s *Sent) Metered(answer wire.Answer) wire.Usage {
	usage := answer.Usage
	if usage.Prompt() == 0 {
		exchange := &s.account.exchange
		usage.CacheRead = min(exchange.After, exchange.Expected(s.account.before))
		usage.Input = exchange.After - usage.CacheRead
	}
	said := answer.Said
	if said == 0 { // the answer came in one piece, if at all
		for _, message := range answer.Messages {
			said += len(message)
		}
	}
	usage.Output = max(usage.Output, said/bytesPerToken)
	return usage
}

// Searched returns an answer with one web search if the request causes one and the usage has no count. Such
// models search for every answer, and the provider charges for it.
func (s *Sent) Searched(answer wire.Answer) wire.Answer {
	if _, isCounted := answer.Tools["web_search"]; s.account.billing.Search && !isCounted && answer.Usage.Prompt() > 0 {
		answer.Use("web_search", 1)
	}
	return answer
}

// Served returns the terms of an answer, with the model's name if it differs from the requested one.
func (w *Writer) Served(sent *Sent, answer wire.Answer) wire.Served {
	served := sent.account.served(answer.Served)
	if answer.Model != "" && !isSame(sent.account.own.Name, w.Models.Lookup(answer.Model).Name) {
		served.Model = answer.Model
	}
	return served
}

// isSame reports whether two names mean the same model: one may begin with the name of a reseller.
func isSame(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}

// Answered learns from the usage that the provider reported for a prompt and returns the exchange's cost and
// savings. It ignores an estimated usage for learning and claims no savings for it.
func (w *Writer) Answered(sent Sent, answer wire.Answer) cost.Money {
	usage := answer.Usage
	exchange := sent.account.exchange
	exchange.Usage = usage
	answering := w.answering(&sent, answer.Model)
	exchange.Price = answering.On(sent.account.terms(answer.Served))
	money := exchange.Money(sent.account.before)
	money.Cost += w.toolFees(answering, answer.Tools)
	for _, own := range answer.Compactions {
		money.Cost += priceOf(own, exchange.Price)
	}
	for _, advisor := range answer.Advisors {
		money.Cost += priceOf(advisor.Usage, w.answering(&sent, advisor.Model).On(sent.account.terms(answer.Served)))
	}
	if sent.stores && sent.Lane != nil && answer.ID != "" && answer.Complete {
		w.Resolver.Answered(sent.Scope, answer.ID, sent.Lane.Session)
	}
	if !usage.Reported || usage.Prompt() == 0 {
		return money
	}
	w.metered(&sent, usage)
	if !sent.Broken {
		w.learn(sent, answer)
	}
	if sent.Lane != nil {
		w.Tracker.Add(sent.Lane.ID, exchange.Cached(sent.account.before), money.Net)
	}
	return money
}

// priceOf returns the price of a usage, in millionths of a US dollar.
func priceOf(used wire.Usage, price tokens.Price) int64 {
	return price.MicroUSD(used.Input, used.CacheRead, used.CacheWrite-used.CacheWrite1h, used.CacheWrite1h, used.Output)
}

// answering returns the model that answered, at its list price. If the request has fallback models and the
// answer names no model, it is the most expensive of them.
func (w *Writer) answering(sent *Sent, name string) tokens.Model {
	own, answered := sent.account.own, sent.account.overrides.On(w.Models.Lookup(name), name)
	if answered.Name == own.Name {
		return own
	}
	answered.Provider = cmp.Or(own.Provider, answered.Provider)
	dearest := own
	for _, model := range sent.account.others {
		if model.Name == answered.Name {
			return model
		}
		if model.Price.Output > dearest.Price.Output {
			dearest = model
		}
	}
	if answered.Price.Input > 0 && !own.Price.Free {
		return answered
	}
	return dearest
}

// toolFees returns the cost of the tools that the provider ran for an answer, in millionths of a US dollar.
// It is 0 if the model is free or has no price.
func (w *Writer) toolFees(answering tokens.Model, uses map[string]int) int64 {
	if answering.Price.Input <= 0 {
		return 0
	}
	sum := 0.0
	for tool, count := range uses {
		price, isListed := w.Models.ToolUse(answering, tool)
		if !isListed {
			price = tokens.ToolPrice{Use: w.unlistedFee(tool)}
		}
		sum += price.Of(count)
	}
	return int64(math.Round(sum * 1e6))
}

// unlistedFee returns the assumed price of one use of a provider's tool missing from the catalog, in US
// dollars: at least the highest listed price.
func (w *Writer) unlistedFee(tool string) float64 {
	return max(float64(wire.ToolFee(tool))/1e6, w.Models.DearestToolUse())
}

// UnlistedTools returns the tools that the provider ran for an answer and that the catalog doesn't list, with
// the assumed cost of their uses in millionths of a US dollar.
func (w *Writer) UnlistedTools(sent *Sent, answer wire.Answer) map[string]int64 {
	answering, unlisted := w.answering(sent, answer.Model), map[string]int64{}
	for tool, count := range answer.Tools {
		if _, isListed := w.Models.ToolUse(answering, tool); !isListed && count > 0 {
			unlisted[tool] = w.toolFees(answering, map[string]int{tool: count})
		}
	}
	return unlisted
}

// learn records the reported size of a prompt.
func (w *Writer) learn(sent Sent, answer wire.Answer) {
	reported := answer.Usage.Prompt()
	sent.size.anchor.Tokens = reported
	if sent.Lane != nil {
		sent.Lane.Reported(sent.size.anchor)
	}
	if sent.size.isWhole && !answer.Reduced { // otherwise the count covers more or less than the estimate
		w.Calibration.Observe(sent.Scope.Workspace, sent.size.model, sent.size.estimate, reported)
	}
}
