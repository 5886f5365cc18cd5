package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// opened is a request with all its data.
type opened struct {
	row

	Report   pipeline.Report
	Headers  []header
	Decision *cost.Decision // the epoch whose projection its prompt used, or nil
	Repeat   repeat

	MayOpenSession bool
	MayRead        bool   // the session's messages
	Said           string // by the provider when it refused; "" if unavailable, see silence

	Asked, Answered message

	Again   again
	NotSent string // why the last attempt to resend it failed; "" if absent

	DecisionFailed, SaidFailed, AgainFailed string // references in the log; "" if loaded

	names map[uuid.UUID]string // of keys
}

// open reads a request's data. m has the workspace's keys.
func (h *Handler) open(ctx context.Context, who tenants.Principal, exchange *tenants.Exchange, m *model) (*opened, error) {
	reader, err := h.deps.Data.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return nil, err
	}
	named := []tenants.Exchange{*exchange}
	if err := h.nameUsers(ctx, who, named); err != nil {
		return nil, err
	}
	exchange = &named[0]
	o := &opened{
		row: newRow(exchange, m.Names), Report: reportOf(&exchange.Prompt), names: m.Names,
		MayOpenSession: exchange.Request.Session != uuid.Nil && who.Role.May(tenants.ReadSessions), MayRead: reader.MayRead(exchange.Request.APIKey),
	}
	o.Headers = headersOf(exchange, &o.Report)
	o.Repeat = repeatOf(h.deps.PublicURL, &exchange.Request, o.MayRead && who.Role.May(tenants.ReadArchive))
	h.readMessages(ctx, o, exchange)
	var decisionErr, saidErr, againErr error
	o.Again, againErr = h.againOf(ctx, who, o, exchange, m.Keys)
	o.AgainFailed = h.failed(ctx, "send again", againErr)
	o.Decision, decisionErr = h.decision(ctx, exchange)
	o.DecisionFailed = h.failed(ctx, "decision", decisionErr)
	if o.MayRead {
		o.Said, saidErr = h.said(ctx, exchange)
		o.SaidFailed = h.failed(ctx, "error text", saidErr)
	}
	return o, nil
}

// decision returns the epoch whose projection the prompt used, possibly inherited from another lane, or nil.
func (h *Handler) decision(ctx context.Context, exchange *tenants.Exchange) (*cost.Decision, error) {
	if exchange.Prompt.Projection == 0 || exchange.Request.Session == uuid.Nil {
		return nil, nil //nolint:nilnil // most requests have none
	}
	decisions, err := h.deps.Costs.Decisions(ctx, exchange.Workspace, exchange.Request.Session)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return nil, err
	}
	return decisionOf(decisions, exchange.Request.Lane, exchange.Prompt.Projection), nil
}

// decisionOf returns a session's epoch by number: the lane's own, or else one that the lane may have
// inherited; nil if absent.
func decisionOf(decisions []cost.Decision, lane uuid.UUID, number int) (found *cost.Decision) {
	for i := range decisions {
		switch {
		case decisions[i].Number != number:
		case decisions[i].Lane == lane:
			return &decisions[i]
		default:
			found = &decisions[i]
		}
	}
	return found
}

// said returns the provider's error text; "" if it was not kept.
func (h *Handler) said(ctx context.Context, exchange *tenants.Exchange) (string, error) {
	if exchange.Answer.ErrorText == nil || h.deps.Keys == nil {
		return "", nil
	}
	key, err := h.deps.Keys.Key(ctx, exchange.Workspace)
	if err != nil {
		return "", err
	}
	text, err := key.OpenError(exchange.ID, exchange.Answer.ErrorText)
	if errors.Is(err, archive.ErrSealed) {
		return "", fmt.Errorf("error of exchange %s: %w", exchange.ID, err)
	}
	return string(text), err
}

// isError reports whether the request failed.
func (o *opened) isError() bool { return o.Answer.ErrorFrom != "" || o.Answer.Status >= 400 }

// fault describes the failure and its source in a sentence.
func (o *opened) fault() string {
	switch {
	case o.Answer.Status == 499:
		return "The client closed the connection before its answer began."
	case o.Answer.ErrorFrom == "proxy":
		return "The proxy refused this request itself. The provider was not asked, or its answer did not come."
	case o.Answer.ErrorFrom == "provider" && o.Answer.Status < 400:
		return "The provider ended its answer early with an error."
	case o.Answer.ErrorFrom == "provider":
		return "The provider refused this request. Its answer went to the client byte for byte."
	default:
		return "The request failed."
	}
}

// silence explains why the provider's error text is not shown.
func (o *opened) silence() string {
	switch {
	case o.Answer.ErrorFrom != "provider":
		return ""
	case !o.MayRead && o.Answer.ErrorText != nil:
		return "The provider’s error is not shown, because it may repeat the request, and the workspace does not let you read that."
	default:
		return "The provider’s error is not kept: storing was off, it was not text, or its session was deleted or has expired."
	}
}

// place returns the address of the request's newest message in its session.
func (o *opened) place() string {
	if o.Request.Position == 0 {
		return paths.Session(o.Request.Session)
	}
	return paths.With(paths.Session(o.Request.Session), "lane", o.Request.Lane.String(), "m", strconv.Itoa(o.Request.Position-1))
}

// fact is a figure with its name.
type fact struct{ Name, Value, Title string }

// tokens returns the sizes of prompt and answer.
func (o *opened) tokens() []fact {
	count := func(name string, n int) fact {
		return fact{name, components.Count(int64(n)), components.Count(int64(n)) + " tokens"}
	}
	facts := []fact{count("Received, estimated", o.Prompt.TokensBefore), count("Sent, estimated", o.Prompt.TokensAfter)}
	if o.Prompt.Window > 0 {
		facts = append(facts, fact{"Limit", components.Count(int64(o.Prompt.Window)), "filled to " + components.Share(int64(o.Prompt.TokensAfter), int64(o.Prompt.Window))})
	}
	return append(facts, count("Input, uncached", o.Tokens.Input), count("Read from cache", o.Tokens.CacheRead), count("Written to cache", o.Tokens.CacheWrite), count("Output", o.Tokens.Output))
}

// terms returns the service tier, speed and region of the request; "" if unknown.
func (o *opened) terms() string {
	var terms []string
	for _, term := range []fact{{Name: "service tier", Value: o.Answer.ServiceTier}, {Name: "speed", Value: o.Answer.Speed}, {Name: "region", Value: o.Answer.Region}} {
		if term.Value != "" {
			terms = append(terms, term.Name+" "+term.Value)
		}
	}
	return strings.Join(terms, ", ")
}

// missed explains a provider cache miss.
func (o *opened) missed() string {
	words := map[cost.Cause]string{
		cost.TTLExpiry:          "The provider’s cache had expired.",
		cost.PrefixChangeOurs:   "We changed the earlier prompt: a compaction, or an addition by a module.",
		cost.PrefixChangeClient: "The client changed its earlier prompt: system prompt, tools, model or history.",
		cost.ColdStart:          "It was the thread’s first prompt, so the cache was empty.",
		cost.Provider:           "The prompt was unchanged. The provider evicted the cache, or another machine answered.",
	}[cost.Cause(o.Tokens.MissCause)]
	if words == "" {
		return "No cached input was missed."
	}
	if o.Tokens.MissedTokens > 0 {
		words += " " + components.Count(int64(o.Tokens.MissedTokens)) + " tokens were paid for again."
	}
	return words
}

// counts returns an event's counts as text, by name.
func counts(event pipeline.ReportEntry) string {
	parts := make([]string, 0, len(event.Counts))
	for _, name := range slices.Sorted(maps.Keys(event.Counts)) {
		parts = append(parts, countWords(name, int64(event.Counts[name])))
	}
	if event.FellBackTo != "" {
		parts = append(parts, "fell back to "+event.FellBackTo)
	}
	return strings.Join(parts, ", ")
}

// reasonWord explains an event.
func reasonWord(reason string) string {
	if reason == cost.NoticeEpochs {
		return "many compactions"
	}
	return reason
}

// countWords formats a count of an event, money as money.
func countWords(name string, n int64) string {
	named, isMoney := strings.CutSuffix(name, "_microusd")
	named = strings.ReplaceAll(strings.ReplaceAll(named, "_", " "), "epochs", "compactions")
	if !isMoney {
		return named + " " + components.Count(n)
	}
	words := map[string]string{"predicted net": "predicted savings", "worst net": "worst case", "net": "saved", "rent": "paid so far to reread old turns"}[named]
	return cmp.Or(words, named) + " " + components.Money(n)
}

// outcomeWord is a module's outcome in a word.
func outcomeWord(outcome string) string {
	if outcome == pipeline.Noop {
		return "no change"
	}
	return outcome
}

// outcomeName is a module's outcome.
func outcomeName(outcome string) string {
	switch outcome {
	case pipeline.Applied:
		return "changed the prompt, or replayed an earlier change"
	case pipeline.Noop:
		return "left the prompt unchanged"
	case pipeline.Failed:
		return "failed and was undone; the last good prompt went out"
	case pipeline.Skipped:
		return "did not run, because this installation does not have it"
	default:
		return outcome
	}
}

func outcomeTag(outcome string) string {
	switch outcome {
	case pipeline.Applied:
		return "ok"
	case pipeline.Failed:
		return "bad"
	default:
		return ""
	}
}

// endpoint describes the endpoint in a word.
func (o *opened) endpoint() string {
	if o.Request.Stream {
		return o.Request.Endpoint + ", streamed"
	}
	return o.Request.Endpoint
}

func (o *opened) hasLevels() bool { return o.Prompt.Levels != [4]int{} }

// levelWords returns the number of turns at each level.
func (o *opened) levelWords() string {
	return fmt.Sprintf("Turns in the prompt: %d verbatim, %d with tool results cut, %d by their first sentences, %d in blocks of one line",
		o.Prompt.Levels[0], o.Prompt.Levels[1], o.Prompt.Levels[2], o.Prompt.Levels[3])
}

// againWords describes the effects of resending a request, and the parts that are left out.
func (o *opened) againWords() string {
	words := "It goes through the proxy with the history from the archive, counts against the key's budget, and is listed as a request of its own. "
	if len(o.Again.Keys) == 1 {
		words = "With your API key " + o.Again.Keys[0].Name + ". " + words
	}
	if o.Again.Cost != "" && len(o.Again.Models) == 0 {
		words += "It costs about " + o.Again.Cost + " if the answer is as long as the first one. "
	}
	if len(o.Again.Models) > 0 {
		words += "It costs about what stands beside the model, if the answer is as long as the first one and nothing is cached. "
	}
	return words + "System prompt, tool definitions, and settings aren't archived, so it goes without them."
}
