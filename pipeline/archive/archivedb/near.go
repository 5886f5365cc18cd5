package archivedb

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/batchdb"
)

const (
	// queryTimeout is how long a search waits for its query's embedding.
	queryTimeout = 300 * time.Millisecond
	// vectorTimeout bounds reading vectors, before and after the query's embedding. Vectors read by then stay
	// in memory for the next search.
	vectorTimeout = 2 * time.Second
	// vectorsAtOnce is how many vectors one statement reads.
	vectorsAtOnce = 1000
	// leastCosine is the cosine below which two texts count as unrelated. It excludes the nearest documents
	// if none is relevant. It was not measured for a particular model.
	leastCosine = 0.2
)

// The candidates of a search by embeddings: for a lane its line as in search_within, for a session all its
// documents, otherwise the newest of the workspace. All statements take the same parameters. A statement
// without use for one names it only for its type.
const (
	sqlLineDocuments = `WITH RECURSIVE line AS (
			SELECT l.id, l.parent_id, l.fork_at, coalesce(nullif($5::int, 0), 2147483647) AS bound
			FROM lanes l WHERE l.workspace_id = $1 AND l.id = $4
			UNION ALL
			SELECT p.id, p.parent_id, p.fork_at, least(line.bound, line.fork_at)
			FROM line CROSS JOIN LATERAL (SELECT id, parent_id, fork_at FROM lanes WHERE workspace_id = $1 AND id = line.parent_id OFFSET 0) p
		), scope AS (
			SELECT d.lane_id, d.session_id, d.api_key_id, d.first, d.after, d.part, d.at, d.terms FROM line JOIN archive_documents d ON d.workspace_id = $1 AND d.lane_id = line.id AND d.after <= line.bound
			ORDER BY d.at DESC LIMIT $10)`
	sqlSessionDocuments = `WITH scope AS (SELECT d.lane_id, d.session_id, d.api_key_id, d.first, d.after, d.part, d.at, d.terms
			FROM archive_documents d
			WHERE d.workspace_id = $1 AND d.session_id = $3 AND ($4::uuid IS NULL OR $5::int IS NULL) ORDER BY d.at DESC LIMIT $10)`
	sqlNewestDocuments = `WITH scope AS (SELECT d.lane_id, d.session_id, d.api_key_id, d.first, d.after, d.part, d.at, d.terms
			FROM archive_documents d
			WHERE d.workspace_id = $1 AND ($4::uuid IS NULL OR $5::int IS NULL)
			AND d.at >= coalesce($7::timestamptz, '-infinity') AND d.at < coalesce($8::timestamptz, 'infinity')
			ORDER BY d.at DESC LIMIT $10)`
	sqlOfScope = ` SELECT d.lane_id, d.session_id, d.first, d.after, d.part, d.at
		FROM scope d JOIN archive_vectors v ON v.workspace_id = $1 AND v.lane_id = d.lane_id AND v.first = d.first AND v.part = d.part
			AND v.after = d.after AND v.model = $9
		WHERE ($2::uuid[] IS NULL OR d.api_key_id = ANY ($2)) AND ($3::uuid IS NULL OR d.session_id = $3)
			AND ($11::text IS NULL AND $12::text IS NULL OR EXISTS (SELECT FROM sessions s WHERE s.workspace_id = $1 AND s.id = d.session_id
				AND ($11 IS NULL OR s.end_user = $11) AND ($12 IS NULL OR s.project = $12)))
			AND ($6::text IS NULL OR d.terms @> $6::text::bigint[])
			AND ($7::timestamptz IS NULL OR d.at >= $7) AND ($8::timestamptz IS NULL OR d.at < $8)`
	sqlReadVectors = `SELECT v.lane_id, v.first, v.part, v.after, v.vector FROM archive_vectors v
		JOIN unnest($3::uuid[], $4::int[], $5::int[], $6::int[]) AS t (lane_id, first, part, after)
			ON v.lane_id = t.lane_id AND v.first = t.first AND v.part = t.part AND v.after = t.after
		WHERE v.workspace_id = $1 AND v.model = $2`
)

// rankedDocument is a document in a ranking.
type rankedDocument struct {
	archive.Hit

	part int
	rank float64 // by its text
}

func (d *rankedDocument) place() vectorPlace {
	return vectorPlace{lane: d.Lane, first: d.From, part: d.part, after: d.To}
}

// near returns the documents with the embeddings nearest to the query's, nearest first, with their cosines as
// scores. It returns nil if the workspace has no model, if no document in scope is embedded, or if embeddings
// fail or are late. The search then uses the text alone.
func (l lookup) near(ctx context.Context, query *archive.Query, most int) []rankedDocument {
	text := search.Bounded(strings.TrimSpace(query.Text), embedBytes)
	if l.embeddings == nil || text == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.embeddings.all)
	defer cancel()
	model, err := l.embeddings.embedder.EmbeddingModel(ctx, l.workspace)
	if err != nil || model == "" {
		return nil
	}
	candidates, err := l.candidates(ctx, query, model)
	if err != nil || len(candidates) == 0 {
		return nil
	}
	asking, stop := context.WithTimeout(ctx, l.embeddings.query)
	defer stop()
	made, err := l.embeddings.embedder.Embed(asking, l.workspace, query.APIKey, model, []string{text})
	if err != nil || len(made) != 1 {
		return nil
	}
	vectors, err := l.vectors(ctx, model, candidates)
	if err != nil {
		return nil
	}
	asked := newVector(made[0])
	found := make([]rankedDocument, 0, most)
	for i := range candidates {
		candidates[i].Score = min(asked.cosine(vectors[candidates[i].place()]), 1)
		if candidates[i].Score >= leastCosine {
			found = append(found, candidates[i])
		}
	}
	slices.SortFunc(found, func(a, b rankedDocument) int { return cmp.Or(cmp.Compare(b.Score, a.Score), byAge(&a, &b)) })
	return found[:min(most, len(found))]
}

// byAge sorts documents, the newest first, in a total order.
func byAge(a, b *rankedDocument) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.From, a.From), cmp.Compare(a.part, b.part), slices.Compare(a.Lane[:], b.Lane[:]))
}

// candidates returns the embedded documents in a query's scope.
func (l lookup) candidates(ctx context.Context, query *archive.Query, model string) ([]rankedDocument, error) {
	required, err := l.required(ctx, query)
	if err != nil {
		return nil, err
	}
	statement := sqlNewestDocuments
	switch {
	case query.Lane != uuid.Nil:
		statement = sqlLineDocuments
	case query.Session != uuid.Nil:
		statement = sqlSessionDocuments
	}
	var found []rankedDocument
	found, err = batchdb.List(ctx, batchdb.Of(l.archive.runner, l.workspace), func(row pgx.CollectableRow) (one rankedDocument, err error) {
		err = row.Scan(&one.Lane, &one.Session, &one.From, &one.To, &one.part, &one.At)
		return one, err
	}, statement+sqlOfScope, l.workspace, l.keys, orNull(query.Session), orNull(query.Lane), query.Before, required,
		orNull(query.Since), orNull(query.Until), model, embedNewest, query.EndUser, orNull(query.Project))
	return found, err
}

// vectors returns the vectors of documents, from memory if possible.
func (l lookup) vectors(ctx context.Context, model string, documents []rankedDocument) (map[vectorPlace]vector, error) {
	vectors := make(map[vectorPlace]vector, len(documents))
	var missing []vectorPlace
	for i := range documents {
		place := documents[i].place()
		known, is := l.embeddings.known.Get(knownVector(l.workspace, model, place))
		if !is {
			missing = append(missing, place)
			continue
		}
		vectors[place] = known
	}
	for some := range slices.Chunk(missing, vectorsAtOnce) {
		if err := l.readVectors(ctx, model, some, vectors); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

// readVectors adds the vectors of places from the database. It omits a vector that does not open, so that the
// search still works.
func (l lookup) readVectors(ctx context.Context, model string, places []vectorPlace, vectors map[vectorPlace]vector) error {
	key, err := l.archive.keys.Key(ctx, l.workspace)
	if err != nil {
		return err
	}
	var wanted vectorRows
	for _, place := range places {
		wanted.add(place, nil)
	}
	return batchdb.ForEach(ctx, batchdb.Of(l.archive.runner, l.workspace), func(row pgx.CollectableRow) error {
		var place vectorPlace
		var sealed []byte
		if err := row.Scan(&place.lane, &place.first, &place.part, &place.after, &sealed); err != nil {
			return err
		}
		raw, err := key.Open(place.about(model), sealed)
		if err != nil {
			return nil //nolint:nilerr // what cannot be opened counts as not embedded
		}
		vectors[place] = vectorOf(raw)
		l.embeddings.known.Set(knownVector(l.workspace, model, place), vectors[place])
		return nil
	}, sqlReadVectors, l.workspace, model, wanted.lanes, wanted.first, wanted.part, wanted.after)
}

// fusion is the constant k of reciprocal rank fusion.
const fusion = 60

// fuse merges two rankings of documents by reciprocal rank fusion: each ranking gives a document 1/(60+its
// place). Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank
// Learning Methods", SIGIR 2009. A document's score is the better of its two.
func fuse(text, near []rankedDocument) []rankedDocument {
	if len(near) == 0 {
		return text
	}
	places := make(map[vectorPlace]int, len(text)+len(near))
	var fused []rankedDocument
	var ranks []float64
	for _, ranking := range [][]rankedDocument{text, near} {
		for i := range ranking {
			at, known := places[ranking[i].place()]
			if !known {
				at = len(fused)
				places[ranking[i].place()] = at
				fused, ranks = append(fused, ranking[i]), append(ranks, 0)
			}
			fused[at].Score = max(fused[at].Score, ranking[i].Score)
			ranks[at] += 1 / float64(fusion+i+1)
		}
	}
	slices.SortFunc(fused, func(a, b rankedDocument) int {
		return cmp.Or(cmp.Compare(ranks[places[b.place()]], ranks[places[a.place()]]), cmp.Compare(b.Score, a.Score), byAge(&a, &b))
	})
	return fused
}
