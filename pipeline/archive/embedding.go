package archive

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// ErrNoEmbeddings says that a workspace has no provider for embeddings, or that its provider failed a moment
// ago.
var ErrNoEmbeddings = errors.New("no provider of the workspace makes embeddings")

// Embedder has texts embedded by the workspaces' own providers, at their cost.
type Embedder interface {
	// EmbeddingModel returns the model for a workspace's archive, or "" if the archive must not be sent to
	// any.
	EmbeddingModel(ctx context.Context, workspace tenants.WorkspaceID) (string, error)

	// Embed returns a vector for each text, all of the same length. The usage counts for apiKey, unless it is
	// uuid.Nil. It returns ErrNoEmbeddings or the provider's error.
	Embed(ctx context.Context, workspace tenants.WorkspaceID, apiKey uuid.UUID, model string, texts []string) ([][]float32, error)
}
