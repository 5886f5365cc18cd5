package archivedb

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/localcache"
	"palimpsest/tenants"
)

const (
	// embedNewest is how many of a workspace's newest documents are embedded, and how many vectors one search
	// compares.
	embedNewest = 20_000
	// embedPass is how many documents of one workspace are embedded in one pass, and embedBatch in one
	// request to its provider.
	embedPass  = 512
	embedBatch = 32
	// embedBytes is how much of a document or a query is embedded. A token has at least one byte, so 32 texts
	// stay below OpenAI's limit of 300,000 tokens a request, and each text below 8,192.
	embedBytes = 8000
	// embedTimeout bounds the pass over one workspace.
	embedTimeout = time.Minute
	// embedWindow is how many messages are read at once to embed their documents.
	embedWindow = 64
	// vectorMemory bounds the vectors of all workspaces in memory, in bytes.
	vectorMemory = 256 << 20
	// vectorAge is how long an unused vector stays in memory.
	vectorAge = time.Hour
)

const (
	sqlUnembedded = `SELECT d.lane_id, d.first, d.part, d.after, s.format FROM (
			SELECT lane_id, first, part, after, session_id, at FROM archive_documents WHERE workspace_id = $1 ORDER BY at DESC LIMIT $3) d
		JOIN sessions s ON s.workspace_id = $1 AND s.id = d.session_id
		LEFT JOIN archive_vectors v ON v.workspace_id = $1 AND v.lane_id = d.lane_id AND v.first = d.first AND v.part = d.part
			AND v.after = d.after AND v.model = $2
		WHERE v.lane_id IS NULL
		ORDER BY d.at DESC, d.lane_id, d.first DESC, d.part LIMIT $4`
	sqlVectors = `INSERT INTO archive_vectors (workspace_id, lane_id, first, part, after, model, vector)
		SELECT d.workspace_id, d.lane_id, d.first, d.part, d.after, $2, t.vector
		FROM unnest($3::uuid[], $4::int[], $5::int[], $6::int[], $7::bytea[]) AS t (lane_id, first, part, after, vector)
		JOIN archive_documents d ON d.workspace_id = $1 AND d.lane_id = t.lane_id AND d.first = t.first AND d.part = t.part AND d.after = t.after
		FOR KEY SHARE OF d
		ON CONFLICT (workspace_id, lane_id, first, part) DO UPDATE SET after = excluded.after, model = excluded.model, vector = excluded.vector`
)

// embeddings holds the optional part of an Index for embeddings.
type embeddings struct {
	embedder archive.Embedder
	known    *localcache.Cache[string, vector] // by knownVector
	query    time.Duration                     // how long a search waits for its query's embedding
	all      time.Duration                     // how long a search waits for all of its embeddings
}

// knownVector returns the cache key of a vector.
func knownVector(workspace tenants.WorkspaceID, model string, place vectorPlace) string {
	name := make([]byte, 0, 96)
	name = append(append(name, workspace[:]...), place.lane[:]...)
	for _, number := range []int{place.first, place.part, place.after} {
		name = binary.AppendVarint(name, int64(number))
	}
	return string(append(name, model...))
}

// WithEmbeddings returns the index that also searches by embeddings, in workspaces with a model for them.
// Vectors are sealed.
func (x *Index) WithEmbeddings(embedder archive.Embedder) (*Index, error) {
	known, err := localcache.New[string](localcache.Options[vector]{
		MaximumWeight:     vectorMemory,
		Weigher:           func(v vector) uint32 { return uint32(len(v)) + 200 }, //nolint:gosec // at most longestVector, and what an entry takes
		ExpireAfterAccess: vectorAge,
	})
	if err != nil {
		return nil, fmt.Errorf("known vectors: %w", err)
	}
	return &Index{archive: x.archive, parse: x.parse, embeddings: &embeddings{embedder: embedder, known: known, query: queryTimeout, all: vectorTimeout}}, nil
}

// EmbedPending embeds documents without a vector of their workspace's model, the newest first and a bounded
// number for each workspace, and returns how many. The remaining work is visible in the database, so that any
// worker may continue at any time. A failing workspace is left for the next pass while the others continue.
// It returns the first failure other than archive.ErrNoEmbeddings.
func (x *Index) EmbedPending(ctx context.Context) (done int, err error) {
	if x.embeddings == nil {
		return 0, nil
	}
	workspaces, err := (&Mover{runner: x.archive.runner}).workspaces(ctx)
	if err != nil {
		return 0, err
	}
	for _, workspace := range workspaces {
		embedded, passErr := x.embedWorkspace(ctx, workspace)
		done += embedded
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		if passErr != nil && err == nil && !errors.Is(passErr, archive.ErrNoEmbeddings) {
			err = fmt.Errorf("embed documents of workspace %s: %w", workspace, passErr)
		}
	}
	return done, err
}

// unembedded is a document without a vector, and its text once read.
type unembedded struct {
	vectorPlace

	format conversation.Format
	text   string
}

func (x *Index) embedWorkspace(ctx context.Context, workspace tenants.WorkspaceID) (done int, err error) {
	ctx, cancel := context.WithTimeout(ctx, embedTimeout)
	defer cancel()
	model, err := x.embeddings.embedder.EmbeddingModel(ctx, workspace)
	if err != nil || model == "" {
		return 0, err
	}
	documents, err := x.unembedded(ctx, workspace, model)
	if err != nil {
		return 0, err
	}
	for batch := range slices.Chunk(documents, embedBatch) {
		if err := x.read(ctx, workspace, batch); err != nil {
			return done, err
		}
		if err := x.embed(ctx, workspace, model, batch); err != nil {
			return done, err
		}
		done += len(batch)
	}
	return done, nil
}

// unembedded returns the newest documents without a vector of a model.
func (x *Index) unembedded(ctx context.Context, workspace tenants.WorkspaceID, model string) ([]unembedded, error) {
	documents, err := batchdb.List(ctx, batchdb.Of(x.archive.runner, workspace), func(row pgx.CollectableRow) (one unembedded, err error) {
		err = row.Scan(&one.lane, &one.first, &one.part, &one.after, &one.format)
		return one, err
	}, sqlUnembedded, workspace, model, embedNewest, embedPass)
	return documents, err
}

// read reads the texts of documents from the archive.
func (x *Index) read(ctx context.Context, workspace tenants.WorkspaceID, documents []unembedded) error {
	slices.SortStableFunc(documents, func(a, b unembedded) int {
		return cmp.Or(slices.Compare(a.lane[:], b.lane[:]), cmp.Compare(a.first, b.first))
	})
	for len(documents) > 0 {
		from, to := documents[0].first, documents[0].after
		same := 1
		for same < len(documents) && documents[same].lane == documents[0].lane && documents[same].after-from <= embedWindow {
			to = max(to, documents[same].after)
			same++
		}
		if err := x.readWindow(ctx, workspace, documents[:same], max(0, from-callsBehind), to); err != nil {
			return err
		}
		documents = documents[same:]
	}
	return nil
}

// readWindow reads the texts of documents between two messages of a lane. It begins before them, to include
// the calls of their results, so that it splits the messages into the same documents as the index did.
func (x *Index) readWindow(ctx context.Context, workspace tenants.WorkspaceID, documents []unembedded, from, to int) error {
	entries, err := x.archive.Originals(ctx, workspace, documents[0].lane, from, to)
	if err != nil {
		return err
	}
	messages := make([]conversation.Message, to-from)
	for i := range entries {
		message, err := x.parse(documents[0].format, entries[i].Raw)
		if err != nil {
			message = conversation.Message{Role: entries[i].Role}
		}
		messages[entries[i].Index-from] = message
	}
	for _, document := range search.Documents(from, messages) {
		for i := range documents {
			if wanted := &documents[i]; wanted.first == document.From && wanted.part == document.Part {
				wanted.text = document.Text(embedBytes)
			}
		}
	}
	return nil
}

// embed embeds documents and stores their vectors. Documents without a text get an empty vector, so that they
// are not selected again.
func (x *Index) embed(ctx context.Context, workspace tenants.WorkspaceID, model string, documents []unembedded) error {
	key, err := x.archive.keys.Key(ctx, workspace)
	if err != nil {
		return err
	}
	var texts []string
	for i := range documents {
		if documents[i].text != "" {
			texts = append(texts, documents[i].text)
		}
	}
	var made [][]float32
	if len(texts) > 0 {
		if made, err = x.embeddings.embedder.Embed(ctx, workspace, uuid.Nil, model, texts); err != nil {
			return err
		}
	}
	var rows vectorRows
	for i := range documents {
		var direction vector
		if documents[i].text != "" {
			direction, made = newVector(made[0]), made[1:]
		}
		place := documents[i].vectorPlace
		rows.add(place, key.Seal(place.about(model), direction.bytes()))
	}
	return x.exec(ctx, workspace, sqlVectors, workspace, model, rows.lanes, rows.first, rows.part, rows.after, rows.sealed)
}

// vectorRows are rows of archive_vectors, column by column.
type vectorRows struct {
	lanes              [][16]byte
	first, part, after []int32
	sealed             [][]byte
}

func (r *vectorRows) add(place vectorPlace, sealed []byte) {
	r.lanes = append(r.lanes, place.lane)
	r.first = append(r.first, int32(place.first)) //nolint:gosec // a place in one body
	r.part = append(r.part, int32(place.part))    //nolint:gosec // a block of one message
	r.after = append(r.after, int32(place.after)) //nolint:gosec // a place in one body
	r.sealed = append(r.sealed, sealed)
}

// longestVector is the maximum number of components of a stored vector.
const longestVector = 4096

// vector is the direction of an embedding: its components scaled so that the largest is 127, and rounded. It
// has a quarter of the bytes of floats, and the cosine of two is the same on every machine.
type vector []int8

// newVector returns the direction of an embedding, or an empty vector for an embedding without a direction or
// with too many components.
func newVector(embedding []float32) vector {
	largest := 0.0
	for _, value := range embedding {
		largest = max(largest, math.Abs(float64(value)))
	}
	if largest == 0 || len(embedding) > longestVector {
		return nil
	}
	direction := make(vector, len(embedding))
	for i, value := range embedding {
		direction[i] = int8(math.Round(float64(value) / largest * math.MaxInt8))
	}
	return direction
}

// bytes returns the vector's form for sealing.
func (v vector) bytes() []byte {
	raw := make([]byte, len(v))
	for i, value := range v {
		raw[i] = byte(value) //nolint:gosec // the same eight bits
	}
	return raw
}

// vectorOf is the reverse of bytes.
func vectorOf(raw []byte) vector {
	direction := make(vector, len(raw))
	for i, value := range raw {
		direction[i] = int8(value) //nolint:gosec // the same eight bits
	}
	return direction
}

// product returns the scalar product of two vectors of the same length.
func (v vector) product(other vector) int64 {
	sum := int32(0) // 4096 times 127 squared fits
	for i, value := range v {
		sum += int32(value) * int32(other[i])
	}
	return int64(sum)
}

// cosine returns the cosine of two vectors, -1 to 1, or 0 if they cannot be compared.
func (v vector) cosine(other vector) float64 {
	if len(v) != len(other) || len(v) == 0 {
		return 0
	}
	return float64(v.product(other)) / math.Sqrt(float64(v.product(v))*float64(other.product(other)))
}

// vectorPlace identifies the document of a vector. A document that has grown has another one.
type vectorPlace struct {
	lane               uuid.UUID
	first, part, after int
}

// about is the associated data of a sealed vector, besides its workspace.
func (p vectorPlace) about(model string) []byte {
	return fmt.Appendf(nil, "vector %s %d %d %d %s", p.lane, p.first, p.part, p.after, model)
}
