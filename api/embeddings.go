package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/recorder"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// embedPause is how long a workspace's provider is not asked for embeddings after it
// failed to make some.
const embedPause = time.Minute

// ErrNoEmbeddings says that nobody makes embeddings for a workspace now: it has no
// provider that speaks OpenAI's dialect, or that provider failed a moment ago.
var ErrNoEmbeddings = archive.ErrNoEmbeddings

// Embeddings has texts embedded by the workspaces' own providers, and counts what
// that costs for them.
type Embeddings struct {
	settings *Settings
	upstream upstream.Sender
	recorder *recorder.Recorder
	metrics  *Metrics
	now      func() time.Time
	failed   *localcache.Cache[[16]byte, struct{}] // by workspace
}

// NewEmbeddings returns Embeddings.
func NewEmbeddings(settings *Settings, upstream upstream.Sender, recorder *recorder.Recorder, metrics *Metrics, now func() time.Time) (*Embeddings, error) {
	failed, err := localcache.New[[16]byte](localcache.Options[struct{}]{MaximumSize: maxSettings, ExpireAfterWrite: embedPause})
	if err != nil {
		return nil, fmt.Errorf("embeddings that failed: %w", err)
	}
	return &Embeddings{settings: settings, upstream: upstream, recorder: recorder, metrics: metrics, now: now, failed: failed}, nil
}

// EmbeddingModel implements archive.Embedder: the setting rehydrator.embeddingModel of
// a workspace.
func (e *Embeddings) EmbeddingModel(ctx context.Context, workspace tenants.WorkspaceID) (string, error) {
	settings, err := e.settings.of(ctx, workspace)
	if err != nil {
		return "", err
	}
	return pipeline.SettingsOf[rehydrator.Config](settings.config).EmbeddingModel, nil
}

// Embed returns a vector for each of 1 to 2048 texts, all of one length, from the
// key of the workspace that takes the model in OpenAI's dialect. It waits as
// long as ctx lets it. apiKey is whose usage it counts for; uuid.Nil for no key. The
// errors are ErrNoEmbeddings and those of upstream.Embed.
func (e *Embeddings) Embed(ctx context.Context, workspace tenants.WorkspaceID, apiKey uuid.UUID, model string, texts []string) (_ [][]float32, err error) {
	if _, failed := e.failed.Get(workspace); failed {
		return nil, ErrNoEmbeddings
	}
	target, err := e.settings.target(ctx, workspace, tenants.ProviderOpenAI, controls{}, func() (string, error) { return model, nil })
	if errors.Is(err, tenants.ErrNoProvider) {
		return nil, ErrNoEmbeddings
	}
	if err != nil {
		return nil, err
	}
	ctx, span := spans.StartCall(ctx, "embeddings", spans.Name(model))
	defer span.EndWith(&err)
	span.String(spans.Operation, "embeddings")
	span.String(spans.Provider, string(tenants.ProviderOpenAI))
	span.String(spans.RequestModel, spans.Name(model))
	at := e.now()
	embedded, err := upstream.Embed(ctx, e.upstream, target, model, texts)
	span.Int(spans.InputTokens, embedded.Tokens)
	e.charge(workspace, apiKey, target.KeyID, model, embedded.Tokens, at)
	if err != nil {
		e.failed.Set(workspace, struct{}{})
		return nil, fmt.Errorf("embed: %w", err)
	}
	return embedded.Vectors, nil
}

// charge counts what embeddings cost for their workspace.
func (e *Embeddings) charge(workspace tenants.WorkspaceID, apiKey, providerKey uuid.UUID, model string, tokens int, at time.Time) {
	if tokens == 0 {
		return
	}
	cost := embeddingCost(model, tokens)
	e.metrics.usage(wire.Usage{Input: tokens})
	e.metrics.net.Sub(float64(cost) / 1e6)
	e.recorder.Put(recorder.Job{Exchange: &tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), Workspace: workspace, At: at,
		ExchangeRequest: tenants.ExchangeRequest{
			APIKey: apiKey, Endpoint: "/v1/embeddings", Model: model, Client: "palimpsest", Class: "embedding",
		},
		ExchangeAnswer: tenants.ExchangeAnswer{
			Provider: tenants.ProviderOpenAI, ProviderKey: providerKey, Status: http.StatusOK, Attempts: 1,
		},
		ExchangePrompt: tenants.ExchangePrompt{
			Compression: string(pipeline.None), Report: reportJSON(pipeline.Report{Compression: pipeline.None}),
		},
		ExchangeTokens: tenants.ExchangeTokens{Input: tokens},
		ExchangeCost:   tenants.ExchangeCost{CostMicroUSD: cost, NetMicroUSD: -cost},
		ExchangeTimes:  tenants.ExchangeTimes{Duration: e.now().Sub(at)},
	}})
}

// embeddingCost returns what embeddings cost at OpenAI's list prices
// (https://platform.openai.com/docs/pricing), in millionths of a US dollar, rounded
// up; 0 for a model whose price is not known.
func embeddingCost(model string, tokens int) int64 {
	price := 0.0 // US dollars for a million tokens
	switch model {
	case "text-embedding-3-small":
		price = 0.02
	case "text-embedding-3-large":
		price = 0.13
	case "text-embedding-ada-002":
		price = 0.10
	}
	return int64(math.Ceil(price * float64(tokens)))
}

var _ archive.Embedder = (*Embeddings)(nil)
