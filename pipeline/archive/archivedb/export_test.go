package archivedb

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/tenants"
)

// Find searches without opening the originals of what is found.
func Find(ctx context.Context, index *Index, workspace tenants.WorkspaceID, query archive.Query) ([]archive.Hit, error) {
	limit := cmp.Or(query.Limit, archive.DefaultHits)
	within, err := index.within(ctx, workspace, &query)
	if err != nil {
		return nil, err
	}
	found, err := within.find(ctx, &query, asked{Question: search.Ask(query.Text)}, limit)
	found = found[:min(limit, len(found))]
	hits := make([]archive.Hit, len(found))
	for i := range found {
		hits[i] = found[i].Hit
	}
	return hits, err
}

// Wait has searches wait so long for the embedding of their query, and a minute for all
// that embeddings are to them.
func Wait(index *Index, query time.Duration) {
	index.embeddings.query, index.embeddings.all = query, time.Minute
}

// TermHashes returns the hashes of the words w0, w1 and so on.
func TermHashes(keys *archive.Keys, workspace tenants.WorkspaceID, words int) ([]int64, error) {
	key, err := keys.TermKey(context.Background(), workspace)
	if err != nil {
		return nil, err
	}
	hasher, err := newHasher(key)
	if err != nil {
		return nil, err
	}
	hashes := make([]int64, words)
	for i := range hashes {
		hashes[i] = hasher.term(fmt.Sprintf("w%d", i))
	}
	return hashes, nil
}

// ToolHash returns the hash of a tool's name.
func ToolHash(keys *archive.Keys, workspace tenants.WorkspaceID, tool string) (int64, error) {
	key, err := keys.TermKey(context.Background(), workspace)
	if err != nil {
		return 0, err
	}
	hasher, err := newHasher(key)
	if err != nil {
		return 0, err
	}
	return hasher.terms(search.Required(tool, ""))[0], nil
}

// The statements that look messages up by their hashes, and that searches: for the test of their plans.
const (
	StatementKnown     = sqlKnown
	StatementObjects   = sqlObjectsOf
	StatementSearch    = sqlSearch
	StatementOriginals = sqlOriginals
	StatementEntries   = sqlEntries
	StatementForked    = sqlForked
	StatementChains    = sqlChains
	StatementLinked    = sqlLinked
)

// FetchOne reads a byte of a segment from a bucket.
func FetchOne(ctx context.Context, bucket archive.Bucket) error {
	return fetchNeighbors(ctx, bucket, "segment", []*storedBytes{{length: 1}}, 1)
}
