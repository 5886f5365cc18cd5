package archive

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// ErrNoEmbeddings says that nobody makes embeddings for a workspace now: it has no
// provider that can, or that provider failed a moment ago.
var ErrNoEmbeddings = errors.New("no provider of the workspace makes embeddings")

// Embedder has texts embedded by the workspaces' own providers, at their cost.
type Embedder interface {
	// EmbeddingModel returns the model with which a workspace wants its archive
	// embedded; empty if none, and nothing of it may be sent.
	EmbeddingModel(ctx context.Context, workspace tenants.WorkspaceID) (string, error)

	// Embed returns a vector for each text, all of one length. apiKey is whose usage
	// it counts for; uuid.Nil if it counts for none. It returns ErrNoEmbeddings, or why the
	// provider made none.
	Embed(ctx context.Context, workspace tenants.WorkspaceID, apiKey uuid.UUID, model string, texts []string) ([][]float32, error)
}
