package archivedb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

const sqlSearch = `SELECT lane, session, from_message, to_message, in_part, archived, rank, score
	FROM search_within($1::text::bigint[], $2::float8[], $3::bool[], $4::text::bigint[], $5::uuid[], $6::text, $7::text, $8, $9, $10, $11, $12, $13)`

const (
	// partsOfHit is how many documents are requested for each hit, because the calls of one message are
	// separate documents until they are joined.
	partsOfHit = 4
	// snippetBytes bounds a snippet.
	snippetBytes = 400
	// mostMatched bounds the matching words of a hit.
	mostMatched = 8
)

// Search returns the documents that answer a query, best first. Documents of the same messages are one hit.
// The score is the best document's share of the query's weight (of its terms by their kind and their rarity
// in the searched documents), or with embeddings its cosine to the query if that is higher.
func (x *Index) Search(ctx context.Context, workspace tenants.WorkspaceID, query archive.Query) ([]archive.Hit, error) {
	text, where := search.Locate(query.Text, time.Now().UTC())
	question := search.Ask(text)
	if query.Path != "" && len(question.Wanted) == 0 {
		question = search.Ask(query.Path)
	}
	if len(question.Wanted) == 0 && x.embeddings == nil {
		return nil, nil
	}
	limit := cmp.Or(max(query.Limit, 0), archive.DefaultHits)
	limit = min(limit, archive.MaxHits)
	within, err := x.within(ctx, workspace, &query)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	hits, err := within.find(ctx, &query, asked{question, where}, limit)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if question.HasPhrase() {
		within.quotedFirst(ctx, hits, question)
	}
	var found []archive.Hit
	for len(hits) > 0 && len(found) < limit {
		next := hits[:min(limit-len(found), len(hits))]
		hits = hits[len(next):]
		shown, err := within.shown(ctx, next, question)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		found = append(found, shown...)
	}
	return found, nil
}

// lookup is a search in one workspace.
type lookup struct {
	*Index

	workspace tenants.WorkspaceID
	keys      [][16]byte // API keys whose sessions are searched; nil means all
}

// A deleted key has no row here and covers only itself.
const sqlKeysOfPerson = `SELECT k.id FROM api_keys k JOIN api_keys asked ON asked.workspace_id = $1 AND asked.id = $2
	WHERE k.workspace_id = $1 AND coalesce(k.person_id, k.created_by) = coalesce(asked.person_id, asked.created_by)`

// within returns the lookup of a query, limited to the sessions of its API keys.
func (x *Index) within(ctx context.Context, workspace tenants.WorkspaceID, query *archive.Query) (lookup, error) {
	within := lookup{Index: x, workspace: workspace}
	if query.APIKey == uuid.Nil {
		return within, nil
	}
	within.keys = [][16]byte{query.APIKey}
	if !query.Person {
		return within, nil
	}
	err := x.archive.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		others, err := batchdb.Rows(tx, pgx.RowTo[[16]byte], sqlKeysOfPerson, workspace, query.APIKey)
		within.keys = append(within.keys, others...)
		return err
	})
	return within, err
}

// shown returns hits with the data from their originals. It omits recalls, which an index older than their
// exclusion still contains.
func (l lookup) shown(ctx context.Context, hits []foundHit, question search.Question) ([]archive.Hit, error) {
	recalls := make([]bool, len(hits))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchesAtOnce)
	for i := range hits {
		group.Go(func() (err error) {
			recalls[i], err = l.show(ctx, &hits[i], question)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var shown []archive.Hit
	for i := range hits {
		if !recalls[i] {
			shown = append(shown, hits[i].Hit)
		}
	}
	return shown, nil
}

// Messages returns the messages of a hit.
func (x *Index) Messages(ctx context.Context, workspace tenants.WorkspaceID, hit *archive.Hit) ([]conversation.Message, error) {
	formats, err := x.formats(ctx, workspace, []uuid.UUID{hit.Session})
	if err != nil {
		return nil, fmt.Errorf("messages of a hit: %w", err)
	}
	return x.messages(ctx, workspace, hit, formats[hit.Session])
}

// foundHit is a hit and the format of its messages.
type foundHit struct {
	archive.Hit

	format   conversation.Format
	messages []conversation.Message // nil if not read yet
}

// quotedFirst reads the originals of the best hits, and moves those with a phrase of the question before the
// others. Originals that it cannot read are reported when their hit is shown.
func (l lookup) quotedFirst(ctx context.Context, hits []foundHit, question search.Question) {
	var group errgroup.Group
	group.SetLimit(fetchesAtOnce)
	for i := range hits[:min(search.MostPhrased, len(hits))] {
		if hit := &hits[i]; hit.Score >= search.LeastPhrased {
			group.Go(func() error {
				err := l.read(ctx, hit)
				hit.Quoted = question.QuotedIn(hit.messages)
				return err
			})
		}
	}
	_ = group.Wait()
	search.QuotedFirst(hits, func(h *foundHit) bool { return h.Quoted })
}

// read reads the originals of a hit, once.
func (l lookup) read(ctx context.Context, hit *foundHit) (err error) {
	if hit.messages == nil {
		hit.messages, err = l.messages(ctx, l.workspace, &hit.Hit, hit.format)
	}
	return err
}

// find returns hits without the data from their originals. It returns more than limit if available, because
// some may turn out to be recalls.
func (l lookup) find(ctx context.Context, query *archive.Query, question asked, limit int) ([]foundHit, error) {
	var near, text []rankedDocument
	group, searching := errgroup.WithContext(ctx)
	group.Go(func() error {
		near = l.near(searching, query, limit*partsOfHit)
		return nil
	})
	group.Go(func() (err error) {
		text, err = l.ranked(searching, query, question, limit*partsOfHit)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var hits []foundHit
	for _, document := range fuse(text, near) {
		hits = join(hits, document.Hit)
	}
	sessions := make([]uuid.UUID, len(hits))
	for i := range hits {
		sessions[i] = hits[i].Session
	}
	formats, err := l.formats(ctx, l.workspace, sessions)
	for i := range hits {
		hits[i].format = formats[hits[i].Session]
	}
	return hits, err
}

// join adds a hit, or merges it with one of the same messages.
func join(hits []foundHit, hit archive.Hit) []foundHit {
	for i := range hits {
		same := &hits[i]
		if same.Lane == hit.Lane && same.From == hit.From && same.To == hit.To {
			same.Score = max(same.Score, hit.Score)
			return hits
		}
	}
	return append(hits, foundHit{Hit: hit})
}

// ranked returns the documents that match a query best, best first.
func (l lookup) ranked(ctx context.Context, query *archive.Query, question asked, most int) ([]rankedDocument, error) {
	if len(question.Wanted) == 0 {
		return nil, nil
	}
	ranked, err := l.best(ctx, query, question.Question, most)
	if err != nil {
		return nil, err
	}
	if ranked, err = l.located(ctx, query, question, most, ranked); err != nil {
		return nil, err
	}
	search.Lend(ranked, func(d *rankedDocument) search.Ranked {
		return search.Ranked{Lane: d.Lane, From: d.From, To: d.To, Rank: d.rank}
	})
	return ranked[:min(most, len(ranked))], nil
}

// best returns the documents that match a question best, best first.
func (l lookup) best(ctx context.Context, query *archive.Query, question search.Question, most int) ([]rankedDocument, error) {
	arguments, err := l.arguments(ctx, query, question, max(most, search.MostLending))
	if err != nil {
		return nil, err
	}
	var ranked []rankedDocument
	ranked, err = batchdb.List(ctx, batchdb.Of(l.archive.runner, l.workspace), func(row pgx.CollectableRow) (one rankedDocument, err error) {
		err = row.Scan(&one.Lane, &one.Session, &one.From, &one.To, &one.part, &one.At, &one.rank, &one.Score)
		return one, err
	}, sqlSearch, arguments...)
	return ranked, err
}

// arguments returns the arguments of search_within.
func (l lookup) arguments(ctx context.Context, query *archive.Query, question search.Question, most int) ([]any, error) {
	key, err := l.archive.keys.TermKey(ctx, l.workspace)
	if err != nil {
		return nil, err
	}
	hasher, err := newHasher(key)
	if err != nil {
		return nil, err
	}
	wanted := make([]int64, len(question.Wanted))
	weights, hints := make([]float64, len(question.Wanted)), make([]bool, len(question.Wanted))
	for i, term := range question.Wanted {
		wanted[i], weights[i], hints[i] = hasher.term(term.Text), term.Weight, search.IsOptional(term.Text)
	}
	required, err := l.required(ctx, query)
	if err != nil {
		return nil, err
	}
	return []any{
		literal(wanted), weights, hints, required, l.keys, query.EndUser, orNull(query.Project), orNull(query.Session), orNull(query.Lane),
		query.Before, orNull(query.Since), orNull(query.Until), most,
	}, nil
}

// required returns the hashes that a document must have, as an array, or nil.
func (l lookup) required(ctx context.Context, query *archive.Query) (*string, error) {
	terms := search.Required(query.Tool, query.Path)
	if len(terms) == 0 {
		return nil, nil //nolint:nilnil // a filter that is left open
	}
	key, err := l.archive.keys.TermKey(ctx, l.workspace)
	if err != nil {
		return nil, err
	}
	hasher, err := newHasher(key)
	if err != nil {
		return nil, err
	}
	array := literal(hasher.terms(terms))
	return &array, nil
}

const sqlFormats = `SELECT wanted.id, found.format FROM unnest($2::uuid[]) AS wanted (id)
	CROSS JOIN LATERAL (SELECT format FROM sessions WHERE workspace_id = $1 AND id = wanted.id LIMIT 1) found`

func (x *Index) formats(ctx context.Context, workspace tenants.WorkspaceID, sessions []uuid.UUID) (map[uuid.UUID]conversation.Format, error) {
	formats := map[uuid.UUID]conversation.Format{}
	if len(sessions) == 0 {
		return formats, nil
	}
	ids := make([][16]byte, len(sessions))
	for i := range sessions {
		ids[i] = sessions[i]
	}
	err := batchdb.ForEach(ctx, batchdb.Of(x.archive.runner, workspace), func(row pgx.CollectableRow) error {
		var id uuid.UUID
		var format conversation.Format
		if err := row.Scan(&id, &format); err != nil {
			return err
		}
		formats[id] = format
		return nil
	}, sqlFormats, workspace, ids)
	return formats, err
}

// show adds the data from the originals of a hit, which are only read for hits. It reports whether the hit
// consists of recalls only.
func (l lookup) show(ctx context.Context, hit *foundHit, question search.Question) (isRecall bool, err error) {
	if err := l.read(ctx, hit); err != nil {
		return false, err
	}
	messages, isRecall := search.WithoutRecalls(hit.messages)
	hit.Matched = search.Matched(messages, question, mostMatched)
	for _, document := range search.Documents(hit.From, messages) {
		isRecall = isRecall && (document.From != hit.From || document.To != hit.To)
		if document.Tool != "" && !slices.Contains(hit.Tools, document.Tool) {
			hit.Tools = append(hit.Tools, document.Tool)
		}
		for _, path := range document.Paths {
			if !slices.Contains(hit.Paths, path) {
				hit.Paths = append(hit.Paths, path)
			}
		}
	}
	hit.Snippet = search.Snippet(messages, question, snippetBytes)
	return isRecall, nil
}

func (x *Index) messages(ctx context.Context, workspace tenants.WorkspaceID, hit *archive.Hit, format conversation.Format) ([]conversation.Message, error) {
	entries, err := x.archive.Originals(ctx, workspace, hit.Lane, hit.From, hit.To)
	if err != nil {
		return nil, err
	}
	messages := make([]conversation.Message, len(entries))
	for i := range entries {
		if messages[i], err = x.parse(format, entries[i].Raw); err != nil {
			messages[i] = conversation.Message{Role: entries[i].Role}
		}
	}
	return messages, nil
}

// literal writes an array as PostgreSQL does.
func literal(values []int64) string {
	var text strings.Builder
	text.WriteByte('{')
	for i, value := range values {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.FormatInt(value, 10))
	}
	text.WriteByte('}')
	return text.String()
}

func orNull[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

var _ archive.Searcher = (*Index)(nil)
