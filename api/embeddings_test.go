package api

import (
	"errors"
	"testing"

	"palimpsest/pipeline/archive"

	"github.com/google/uuid"
)

// The archive is embedded only for a workspace that names a model, with its own
// provider and at its cost.
func TestTheModelOfTheArchiveIsTheWorkspacesSetting(t *testing.T) {
	t.Parallel()
	c := setupCaching(t, "")
	embeddings := c.embeddings()
	workspace := c.store.workspace
	if model, err := embeddings.EmbeddingModel(t.Context(), workspace); err != nil || model != "" {
		t.Fatalf("a workspace that has set nothing has %q (%v)", model, err)
	}
	c.store.mu.Lock()
	c.store.pipeline.YAML = "rehydrator: {embeddingModel: text-embedding-3-small}"
	c.store.mu.Unlock()
	c.Settings.Forget(workspace)
	model, err := embeddings.EmbeddingModel(t.Context(), workspace)
	if err != nil || model != "text-embedding-3-small" {
		t.Fatalf("%q (%v)", model, err)
	}
	vectors, err := embeddings.Embed(t.Context(), workspace, uuid.Nil, model, []string{"a document", "another"})
	if err != nil || len(vectors) != 2 {
		t.Fatalf("%d vectors (%v)", len(vectors), err)
	}
	charged := c.last(1)
	if charged.Request.Class != "embedding" || charged.Workspace != workspace || charged.Request.APIKey != uuid.Nil || charged.Tokens.Input == 0 || charged.Cost.CostMicroUSD == 0 {
		t.Errorf("charged as %+v", charged)
	}

	if _, err := embeddings.Embed(t.Context(), workspace, uuid.Nil, "no-such-model", []string{"a"}); err == nil {
		t.Fatal("a model that is not for embeddings embeds")
	}
	_, before := c.generated()
	if _, err := embeddings.Embed(t.Context(), workspace, uuid.Nil, model, []string{"a"}); !errors.Is(err, archive.ErrNoEmbeddings) {
		t.Errorf("asked again at once: %v", err)
	}
	if _, after := c.generated(); after != before {
		t.Error("a provider that has failed was asked again at once")
	}
}
