package prompt

import (
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

// Sent is what is still needed of a prompt once it has been sent. It holds
// nothing of the body, so that the memory is free while the answer streams.
type Sent struct {
	Lane     *session.Lane // nil: the store failed
	Scope    session.Scope
	Head     conversation.Hash // link of the history after the request's last message
	Position int               // messages in the request

	// AsksUsage is the prompt's AsksUsage.
	AsksUsage bool

	// Broken says that the answer did not come to its end: what it reports is paid,
	// and nothing is learned from it.
	Broken bool

	// Summarizes says that the workspace has models write summaries of its lanes.
	Summarizes bool

	size    sentSize
	limit   int  // tokens that it might have; 0 if no one knows
	most    int  // tokens that the answer might have; 0 if the request doesn't say
	isNear  bool // the prompt may be too long though it should fit
	account account
	cache   sentCache
}

// sentSize is what the size that the provider reports for a prompt is compared with.
type sentSize struct {
	isWhole  bool // the body holds all of the prompt
	model    tokens.Model
	anchor   session.Anchor // but for the tokens that the provider will report
	estimate int            // o200k tokens of the prompt as sent
}

// sentCache is what is to be learned of the provider's cache of a prompt, and planned
// for the time when it will have gone cold.
type sentCache struct {
	heat    session.CacheState
	life    life
	idle    int               // tokens above which an epoch may be planned ahead
	outline *pipeline.Outline // what to plan it of; nil if none
}

// Sent notes that the prompt has been sent and returns what is needed from then on.
func (p *Prompt) Sent() Sent {
	exchange := p.Exchange
	length := len(exchange.Digests)
	sent := Sent{
		Lane: p.Lane, Scope: exchange.Scope, Head: exchange.Chain[length], Position: length, AsksUsage: p.AsksUsage,
		size: sentSize{
			isWhole: !exchange.Request.Refers && (exchange.Request.ReadOnly == "" || exchange.Request.ReadOnly == bypass), model: exchange.Model,
			estimate: exchange.Estimate(exchange.Projection),
			anchor:   session.Anchor{Position: length, Fixed: exchange.Fixed, Model: exchange.Request.Model, Inserted: exchange.Inserted(exchange.Projection)},
		},
		limit: exchange.Limit, most: exchange.Request.MaxOutput, isNear: p.MayBeTooLong(),
		account: p.account, Summarizes: pipeline.SettingsOf[ipc.Config](exchange.Config).LLMCompression != (ipc.LLMCompression{}),
	}
	sent.size.anchor.Projection = number(exchange)
	p.wentOut(&sent)
	return sent
}

// bytesPerToken is how many bytes of an answer a token stands for, roughly.
const bytesPerToken = 4

// Metered returns the usage of an answer whose provider did not come to report all of
// it: what it has reported, and estimates in place of the rest.
func (s *Sent) Metered(answer wire.Answer) wire.Usage {
	usage := answer.Usage
	if usage.Prompt() == 0 {
		exchange := &s.account.exchange
		usage.CacheRead = min(exchange.After, exchange.Expected(s.account.before))
		usage.Input = exchange.After - usage.CacheRead
	}
	said := answer.Said
	if said == 0 { // it came in one piece, if at all
		for _, message := range answer.Messages {
			said += len(message)
		}
	}
	usage.Output = max(usage.Output, said/bytesPerToken)
	return usage
}

// Served returns on what terms a prompt was answered, and by which model if it's another than the one
// that was asked for.
func (w *Writer) Served(sent *Sent, answer wire.Answer) wire.Served {
	served := sent.account.served(answer.Served)
	if answer.Model != "" && !isSame(sent.account.own.Name, w.Models.Lookup(answer.Model).Name) {
		served.Model = answer.Model
	}
	return served
}

// isSame reports whether two names are of one model: one may say in front who sells it.
func isSame(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}

// Answered learns from the usage that the provider reported for a prompt and
// returns what the exchange cost and saved. Of one that is estimated nothing is learned,
// and no saving claimed.
func (w *Writer) Answered(sent Sent, answer wire.Answer) cost.Money {
	usage := answer.Usage
	exchange := sent.account.exchange
	exchange.Usage = usage
	answering := w.answering(&sent, answer.Model)
	exchange.Price = answering.On(sent.account.terms(answer.Served))
	money := exchange.Money(sent.account.before)
	money.Cost += w.toolFees(answering, answer.Tools)
	for _, own := range answer.Compactions {
		money.Cost += exchange.Price.MicroUSD(own.Input, own.CacheRead, own.CacheWrite-own.CacheWrite1h, own.CacheWrite1h, own.Output)
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

// answering returns the model that answered, at its list price. Where the request let others answer
// in place of its own, and the answer does not say which one did, it is the dearest of them.
func (w *Writer) answering(sent *Sent, name string) tokens.Model {
	own, answered := sent.account.own, sent.account.overrides.On(w.Models.Lookup(name), name)
	if answered.Name == own.Name {
		return own
	}
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

// toolFees returns what the tools cost that the provider ran itself for an answer, in millionths of
// a US dollar. Nothing is charged for where a model has no price, or is free.
func (w *Writer) toolFees(answering tokens.Model, uses map[string]int) int64 {
	if answering.Price.Input <= 0 {
		return 0
	}
	sum := 0.0
	for tool, count := range uses {
		price, isListed := w.Models.ToolUse(answering.Provider, tool)
		if !isListed {
			price = w.unlistedFee(tool)
		}
		sum += price * float64(count)
	}
	return int64(math.Round(sum * 1e6))
}

// unlistedFee returns what a use of a provider's own tool counts as that the catalog doesn't list, in US
// dollars: no less than any that it lists.
func (w *Writer) unlistedFee(tool string) float64 {
	return max(float64(wire.ToolFee(tool))/1e6, w.Models.DearestToolUse())
}

// UnlistedTools returns the tools that the provider ran itself for an answer and that the catalog doesn't list, by name,
// and what their uses count as, in millionths of a US dollar.
func (w *Writer) UnlistedTools(sent *Sent, answer wire.Answer) map[string]int64 {
	answering, unlisted := w.answering(sent, answer.Model), map[string]int64{}
	for tool, count := range answer.Tools {
		if _, isListed := w.Models.ToolUse(answering.Provider, tool); !isListed && count > 0 {
			unlisted[tool] = w.toolFees(answering, map[string]int{tool: count})
		}
	}
	return unlisted
}

// learn learns how large a prompt was.
func (w *Writer) learn(sent Sent, answer wire.Answer) {
	reported := answer.Usage.Prompt()
	sent.size.anchor.Tokens = reported
	if sent.Lane != nil {
		sent.Lane.Reported(sent.size.anchor)
	}
	if sent.size.isWhole && !answer.Reduced { // or the count is of more, or of less, than was estimated
		w.Calibration.Observe(sent.Scope.Workspace, sent.size.model, sent.size.estimate, reported)
	}
}
