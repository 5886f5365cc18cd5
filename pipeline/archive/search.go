package archive

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// Query asks for messages of a workspace's archive. The zero value of a field means no restriction. A query
// without Text and without Path finds no messages.
type Query struct {
	Text    string    // the question in the person's own words
	APIKey  uuid.UUID // only sessions of this API key
	Person  bool      // with APIKey: include the other keys of the member behind it
	EndUser *string   // only sessions of this end user, or with "" those without one; nil means all
	Project string    // only sessions with this tag project
	Session uuid.UUID
	Lane    uuid.UUID
	Before  int       // with Lane: only messages before this index; 0 means all
	Tool    string    // only calls of the tool with this name, folded
	Path    string    // only documents that name this path, a suffix or an element of it
	Since   time.Time // only messages archived at this time or later
	Until   time.Time // only messages archived before this time
	Limit   int       // maximum hits; 0 means DefaultHits, at most MaxHits
}

// DefaultHits and MaxHits bound the hits of one search.
const (
	DefaultHits = 10
	MaxHits     = 100
)

// Hit is a document of the archive that answers a query: a call with its results, or the text of one message.
type Hit struct {
	Session, Lane uuid.UUID
	From, To      int     // messages of the lane, To excluded
	Score         float64 // share of the query's weight that the document holds, or its cosine to the query; 0 to 1
	Quoted        bool    // it contains a phrase of the query word by word
	At            time.Time
	Tools, Paths  []string
	Matched       []string // matching words of the original, most wanted first
	Named         []string // the session's title and the day, if the query names them
	Snippet       string   // lines of the original around the match
}

// Searcher finds messages in the archive of one workspace.
type Searcher interface {
	// Search returns the documents that answer the query, best first. The order is deterministic for the same
	// archive.
	Search(ctx context.Context, workspace tenants.WorkspaceID, query Query) ([]Hit, error)

	// Messages returns the messages of a hit.
	Messages(ctx context.Context, workspace tenants.WorkspaceID, hit *Hit) ([]conversation.Message, error)
}

// SearchFor returns the answers to a query from the sessions that a reader may read, best first. It searches
// each of their API keys separately, so that hits of other keys don't take their places. A query for another
// API key has no hits.
func SearchFor(ctx context.Context, in Searcher, workspace tenants.WorkspaceID, reader tenants.Reader, query Query) ([]Hit, error) {
	if reader.EndUser != "" {
		query.EndUser = &reader.EndUser
	}
	if reader.All {
		return in.Search(ctx, workspace, query)
	}
	var all []Hit
	for _, key := range reader.Keys {
		if !reader.MayRead(key) || query.APIKey != uuid.Nil && query.APIKey != key {
			continue
		}
		of := query
		of.APIKey = key
		hits, err := in.Search(ctx, workspace, of)
		if err != nil {
			return nil, err
		}
		all = append(all, hits...)
	}
	slices.SortStableFunc(all, func(a, b Hit) int {
		switch {
		case a.Quoted == b.Quoted:
			return cmp.Compare(b.Score, a.Score)
		case a.Quoted:
			return -1
		}
		return 1
	})
	return all[:min(len(all), cmp.Or(query.Limit, DefaultHits))], nil
}

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
