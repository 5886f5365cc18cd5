// Package embeddings requests embeddings from the workspaces' own providers, at their cost.
package embeddings

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/proxysettings"
	"palimpsest/api/recorder"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// embedPause is how long embeddings pause for a workspace after its provider failed.
const embedPause = time.Minute

// maxPaused bounds the number of remembered workspaces.
const maxPaused = 100_000

// Client requests embeddings of texts, and counts their cost.
type Client struct {
	Config

	failed *localcache.Cache[[16]byte, struct{}] // by workspace
}

// Config holds a Client's dependencies.
type Config struct {
	Settings *proxysettings.Cache
	Upstream upstream.Sender
	Recorder *recorder.Recorder
	Spent    func(usage wire.Usage, microUSD int64) // receives every charged call
	Now      func() time.Time
}

// New returns a Client.
func New(config Config) (*Client, error) {
	failed, err := localcache.New[[16]byte](localcache.Options[struct{}]{MaximumSize: maxPaused, ExpireAfterWrite: embedPause})
	if err != nil {
		return nil, fmt.Errorf("embeddings that failed: %w", err)
	}
	return &Client{Config: config, failed: failed}, nil
}

// EmbeddingModel implements archive.Embedder: the setting rehydrator.embeddingModel of
// a workspace.
func (c *Client) EmbeddingModel(ctx context.Context, workspace tenants.WorkspaceID) (string, error) {
	config, _, err := c.Settings.Config(ctx, tenants.APIKey{Workspace: workspace}, pipeline.Layer{})
	if err != nil {
		return "", err
	}
	return pipeline.SettingsOf[rehydrator.Config](config).EmbeddingModel, nil
}

// Embed returns a vector for each of 1 to 2048 texts, all of one length, from the workspace's key for the
// model in OpenAI's dialect. It waits as long as ctx allows. apiKey is charged for the usage; uuid.Nil for no
// key. The errors are archive.ErrNoEmbeddings and those of upstream.Embed.
func (c *Client) Embed(ctx context.Context, workspace tenants.WorkspaceID, apiKey uuid.UUID, model string, texts []string) (_ [][]float32, err error) {
	if _, failed := c.failed.Get(workspace); failed {
		return nil, archive.ErrNoEmbeddings
	}
	target, err := c.Settings.Target(ctx, workspace, tenants.ProviderOpenAI, proxysettings.Choice{}, func() (string, error) { return model, nil })
	if errors.Is(err, tenants.ErrNoProvider) {
		return nil, archive.ErrNoEmbeddings
	}
	if err != nil {
		return nil, err
	}
	redactor, err := c.Settings.Redactor(ctx, workspace)
	if err != nil {
		return nil, err
	}
	if redactor != nil { // a query is not archived yet, and the archive may be older than the setting
		clean := make([]string, len(texts))
		for i, text := range texts {
			clean[i] = redactor.Text(text)
		}
		texts = clean
	}
	ctx, span := spans.StartCall(ctx, "embeddings", spans.Name(model))
	defer span.EndWith(&err)
	span.String(spans.Operation, "embeddings")
	span.String(spans.Provider, string(tenants.ProviderOpenAI))
	span.String(spans.RequestModel, spans.Name(model))
	at := c.Now()
	embedded, err := upstream.Embed(ctx, c.Upstream, target, model, texts)
	span.Int(spans.InputTokens, embedded.Tokens)
	overrides, unknown := c.Settings.Overrides(ctx, workspace, target.KeyID)
	if unknown != nil { // the cached settings have expired, and the database is away
		overrides = tokens.Overrides{}
	}
	c.charge(workspace, apiKey, target.KeyID, model, embedded.Tokens, at, costOf(model, embedded.Tokens, overrides))
	if err != nil {
		c.failed.Set(workspace, struct{}{})
		return nil, fmt.Errorf("embed: %w", err)
	}
	return embedded.Vectors, nil
}

// charge records the cost of embeddings for their workspace.
func (c *Client) charge(workspace tenants.WorkspaceID, apiKey, providerKey uuid.UUID, model string, count int, at time.Time, cost int64) {
	if count == 0 {
		return
	}
	c.Spent(wire.Usage{Input: count}, cost)
	c.Recorder.Put(recorder.OwnCall(tenants.Exchange{
		Workspace: workspace, At: at,
		Request: tenants.ExchangeRequest{APIKey: apiKey, Endpoint: "/v1/embeddings", Model: model, Class: "embedding"},
		Answer:  tenants.ExchangeAnswer{Provider: tenants.ProviderOpenAI, ProviderKey: providerKey},
		Tokens:  tenants.ExchangeTokens{Input: count},
		Cost:    tenants.ExchangeCost{CostMicroUSD: cost},
		Times:   tenants.ExchangeTimes{Duration: c.Now().Sub(at)},
	}))
}

// costOf returns the cost of embeddings at the workspace's own price, otherwise at OpenAI's list prices
// (https://platform.openai.com/docs/pricing), in millionths of a US dollar, rounded up. It is 0 for a model
// without a known price.
func costOf(model string, count int, overrides tokens.Overrides) int64 {
	price := 0.0 // US dollars for a million tokens
	switch model {
	case "text-embedding-3-small":
		price = 0.02
	case "text-embedding-3-large":
		price = 0.13
	case "text-embedding-ada-002":
		price = 0.10
	}
	if own, has := overrides.Prices[model]; has {
		price = own.Input
	}
	return int64(math.Ceil(price * float64(count)))
}

var _ archive.Embedder = (*Client)(nil)
