package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Resend sends an archived request again through the proxy with one of the person's API keys, waits until the
// new exchange is recorded, and returns its id. It returns tenants.ErrNotFound for another person's key, and
// the errors of keys that cannot be used.
type Resend func(from *http.Request, who tenants.Principal, key uuid.UUID, request tenants.Resend) (uuid.UUID, error)

// leastAnswer is the minimum of a resent request's answer limit, in tokens, for APIs that require a limit.
const leastAnswer = 4096

// again describes resending a request.
type again struct {
	Why  string           // why it cannot be resent; "" if it can
	Keys []tenants.APIKey // that the person may use
	Cost string           // roughly, at list prices

	Models []components.Option // other models with what it would cost, roughly
	Model  string              // the one chosen
	Pipe   string              // the treatment of the prompt, as chosen

	First uuid.UUID // the request that this one repeats, or uuid.Nil
	Later []row     // requests that repeat this one, newest first
}

// againOf returns the page's information about resending a request.
func (h *Handler) againOf(ctx context.Context, who tenants.Principal, o *opened, exchange *tenants.Exchange, keys []tenants.APIKey) (again, error) {
	a := again{First: exchange.SentAgain()}
	later, _, err := h.deps.Exchanges.Exchanges(ctx, who.Workspace.ID, tenants.ExchangeFilter{Tags: tenants.Tags{tenants.ResendTag: exchange.ID.String()}, Limit: 5})
	if err != nil {
		return a, err
	}
	for i := range later {
		a.Later = append(a.Later, newRow(&later[i], o.names))
	}
	if a.Why = h.notAgain(who, o, &exchange.Request); a.Why != "" {
		return a, nil
	}
	for i := range keys {
		if mayUse(who, &keys[i], h.deps.Now) {
			a.Keys = append(a.Keys, keys[i])
		}
	}
	if a.Model = exchange.Request.Model; h.deps.Models == nil {
		return a, nil
	}
	var set tokens.Overrides
	if h.deps.Prices != nil {
		if set, err = h.deps.Prices(ctx, exchange.Workspace, exchange.Answer.ProviderKey); err != nil {
			return a, err
		}
	}
	a.Cost = h.roughly(exchange, exchange.Request.Model, set)
	a.Models = []components.Option{{Value: exchange.Request.Model, Label: exchange.Request.Model + costWords(a.Cost)}}
	for _, model := range h.deps.Models.Of(h.codecOf(exchange.Request.Endpoint).Traits().Provider) {
		if model.Name != exchange.Request.Model {
			a.Models = append(a.Models, components.Option{Value: model.Name, Label: model.Name + costWords(h.roughly(exchange, model.Name, set))})
		}
	}
	return a, nil
}

// costWords is what a request costs, behind its model's name.
func costWords(cost string) string {
	if cost == "" {
		return ", at an unknown price"
	}
	return ", about " + cost
}

// pipeOptions are the treatments of the prompt.
func pipeOptions() []components.Option {
	var options []components.Option
	for _, pipe := range tenants.ResendPipelines() {
		label := map[tenants.ResendPipeline]string{
			tenants.ResendAsConfigured: "As the key is set up", tenants.ResendUnchanged: "Unchanged, without any module",
		}[pipe]
		if share, err := strconv.ParseFloat(string(pipe), 64); label == "" && err == nil {
			label = fmt.Sprintf("Compressed above %.0f %% of the window", 100*share)
		}
		options = append(options, components.Option{Value: string(pipe), Label: label})
	}
	return options
}

// notAgain explains why a request cannot be resent; "" if it can.
func (h *Handler) notAgain(who tenants.Principal, o *opened, request *tenants.ExchangeRequest) string {
	switch {
	case h.deps.Resend == nil:
		return "This process doesn't send requests."
	case h.codecOf(request.Endpoint) == nil:
		return "Only requests that carry a conversation can be sent again."
	case !o.MayRead || !who.Role.May(tenants.ReadArchive):
		return "You can only send a request again if you may read its messages."
	case o.Asked.Shown == nil:
		return "It can't be sent again: its messages aren't in the archive."
	}
	return ""
}

// mayUse reports whether a person may send requests with an API key. The sender checks it again.
func mayUse(who tenants.Principal, key *tenants.APIKey, now func() time.Time) bool {
	return key.CreatedBy == who.User.ID && key.RevokedAt == nil && (key.ExpiresAt == nil || now().Before(*key.ExpiresAt)) &&
		slices.Contains(key.Scopes, tenants.ScopeProxy)
}

// roughly estimates the list price of resending a request to a model without any caching and with an answer as
// long as the first; "" if the model has no price.
func (h *Handler) roughly(exchange *tenants.Exchange, name string, set tokens.Overrides) string {
	model := set.On(h.deps.Models.Lookup(name), name)
	prompt := max(exchange.Prompt.TokensAfter, exchange.Tokens.Input+exchange.Tokens.CacheRead+exchange.Tokens.CacheWrite)
	if micro := model.Price.MicroUSD(prompt, 0, 0, 0, exchange.Tokens.Output); micro > 0 {
		return components.Money(micro)
	}
	return ""
}

// Again resends a request and shows both answers side by side.
func (h *Handler) Again(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return tenants.ErrNotFound
	}
	model, opened, exchange, err := h.one(ctx, who, id)
	if err != nil {
		return err
	}
	if opened.Again.Why != "" {
		return h.notSent(c, who, opened, http.StatusUnprocessableEntity, opened.Again.Why)
	}
	key, err := uuid.Parse(c.FormValue("key"))
	if err != nil || model.Names[key] == "" {
		return h.notSent(c, who, opened, http.StatusUnprocessableEntity, "Choose one of your API keys.")
	}
	opened.Again.Model, opened.Again.Pipe = cmp.Or(c.FormValue("model"), exchange.Request.Model), c.FormValue("pipeline")
	isOffered := func(option components.Option) bool { return option.Value == opened.Again.Model }
	pipe := tenants.ResendPipeline(opened.Again.Pipe)
	switch {
	case opened.Again.Model != exchange.Request.Model && !slices.ContainsFunc(opened.Again.Models, isOffered):
		return h.notSent(c, who, opened, http.StatusUnprocessableEntity, "Nothing was sent: choose one of the models in the list.")
	case !slices.Contains(tenants.ResendPipelines(), pipe):
		return h.notSent(c, who, opened, http.StatusUnprocessableEntity, "Nothing was sent: choose one of the treatments in the list.")
	}
	body, err := h.body(ctx, exchange, opened.Again.Model)
	if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrDamaged) {
		return h.notSent(c, who, opened, http.StatusUnprocessableEntity, "Nothing was sent: not all of its messages are in the archive.")
	}
	if err != nil {
		return err
	}
	err = h.deps.Audit.Note(ctx, who.Workspace.ID, tenants.Change{
		Action: tenants.RequestSentAgain, Target: id.String(), After: tenants.Fields{"key": model.Names[key], "model": opened.Again.Model},
	})
	if err != nil {
		return err
	}
	everything := tenants.OwnWork(c.Request().Context()) // the proxy works for the workspace
	sent, err := h.deps.Resend(c.Request().WithContext(everything), who, key, tenants.Resend{Of: id, Endpoint: exchange.Request.Endpoint, Body: body, Pipeline: pipe})
	switch {
	case errors.Is(err, tenants.ErrNotFound), errors.Is(err, tenants.ErrKeyRevoked), errors.Is(err, tenants.ErrKeyExpired):
		return h.notSent(c, who, opened, http.StatusUnprocessableEntity, "Nothing was sent: that key can't be used any more. Choose another of your keys.")
	case err != nil:
		return h.notSent(c, who, opened, http.StatusBadGateway, "The answer could not be read. It may still appear under Requests. Reference "+h.failed(ctx, "send again", err)+".")
	}
	return layout.Redirect(c, paths.CompareRequests(id, sent))
}

// notSent shows a request's page with the reason why it was not resent.
func (h *Handler) notSent(c echo.Context, who tenants.Principal, o *opened, status int, why string) error {
	o.NotSent = why
	return h.showOne(c, who, status, o)
}

// body returns a request to a model with the messages of an exchange as received, and otherwise only the fields that the
// API requires. It returns archive.ErrNotFound if a message is missing.
func (h *Handler) body(ctx context.Context, exchange *tenants.Exchange, model string) ([]byte, error) {
	entries, err := h.deps.Archive.Originals(ctx, exchange.Workspace, exchange.Request.Lane, 0, exchange.Request.Position)
	if err != nil {
		return nil, err
	}
	if len(entries) != exchange.Request.Position || exchange.Request.Position == 0 {
		return nil, fmt.Errorf("%d of %d messages of request %s: %w", len(entries), exchange.Request.Position, exchange.ID, archive.ErrNotFound)
	}
	codec := h.codecOf(exchange.Request.Endpoint)
	list := make([]json.RawMessage, len(entries))
	var tools []string
	for i := range entries {
		// The cache markers of all earlier requests would exceed the provider's limit.
		list[i] = spelled(codec.Mark(entries[i].Raw, ""))
		if message, err := codec.Parse(entries[i].Raw); err == nil {
			tools = appendTools(tools, &message)
		}
	}
	return codec.Repeat(wire.Repetition{
		Model: model, Stream: exchange.Request.Stream, MaxOutput: max(leastAnswer, exchange.Tokens.Output), Tools: tools, Messages: list,
	})
}

// spelled returns a list element as a message, because Responses allows text alone in place of a list.
func spelled(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	message, err := json.Marshal(map[string]string{"role": "user", "content": text})
	if err != nil {
		return raw
	}
	return message
}

// appendTools adds the names of a message's tool calls.
func appendTools(tools []string, message *conversation.Message) []string {
	for _, block := range message.Blocks {
		if block.Kind == conversation.ToolCall && block.Name != "" && !slices.Contains(tools, block.Name) {
			tools = append(tools, block.Name)
		}
	}
	return tools
}
