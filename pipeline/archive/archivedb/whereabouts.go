package archivedb

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/batchdb"
)

const (
	// mostTitles is how many of the most recently used sessions are searched by title.
	mostTitles = 5000
	// mostNamed bounds the sessions that a question may name, and leastNamed is the minimum share of the
	// named words in their titles.
	mostNamed  = 3
	leastNamed = 0.5
)

const sqlTitles = `SELECT id, title FROM sessions WHERE workspace_id = $1 AND ($2::uuid[] IS NULL OR api_key_id = ANY ($2))
	AND ($4::text IS NULL OR end_user = $4) AND ($5::text IS NULL OR project = $5) ORDER BY last_at DESC, id DESC LIMIT $3`

// asked is a parsed query with the place and time that it names.
type asked struct {
	search.Question

	where search.Whereabouts
}

// located adds documents of the session and the time that the question names, and returns all, best first,
// with the gains for these places.
func (l lookup) located(ctx context.Context, query *archive.Query, question asked, most int, ranked []rankedDocument) ([]rankedDocument, error) {
	where := &question.where
	var places []archive.Query
	if where.NamesTime() && query.Since.IsZero() && query.Until.IsZero() {
		within := *query
		within.Since, within.Until = where.From, where.To
		places = append(places, within)
	}
	var sessions map[uuid.UUID]string
	if where.NamesSession() && query.Session == uuid.Nil && query.Lane == uuid.Nil {
		var err error
		if sessions, err = l.sessionsNamed(ctx, query, where); err != nil {
			return nil, err
		}
		for session := range sessions {
			within := *query
			within.Session = session
			places = append(places, within)
		}
	}
	if len(places) == 0 {
		return ranked, nil
	}
	// Rarity depends on the searched documents, so ranks from different places are not comparable, but scores
	// are.
	scale := 1.0
	if len(ranked) > 0 && ranked[0].Score > 0 {
		scale = ranked[0].rank / ranked[0].Score
	}
	known := make(map[vectorPlace]bool, len(ranked))
	for i := range ranked {
		known[ranked[i].place()] = true
	}
	for i := range places {
		there, err := l.best(ctx, &places[i], question.Question, most)
		if err != nil {
			return nil, err
		}
		for _, one := range there {
			if place := one.place(); !known[place] {
				known[place] = true
				one.rank = one.Score * scale
				ranked = append(ranked, one)
			}
		}
	}
	for i := range ranked {
		one := &ranked[i]
		one.rank *= where.Gain(sessions[one.Session], one.At)
		if title := sessions[one.Session]; title != "" {
			one.Named = append(one.Named, title)
		}
		if where.Holds(one.At) {
			one.Named = append(one.Named, one.At.UTC().Format(time.DateOnly))
		}
	}
	slices.SortFunc(ranked, func(a, b rankedDocument) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), b.At.Compare(a.At), bytes.Compare(a.Lane[:], b.Lane[:]), cmp.Compare(a.From, b.From), cmp.Compare(a.part, b.part))
	})
	return ranked, nil
}

// sessionsNamed returns the sessions that a question names, with their titles.
func (l lookup) sessionsNamed(ctx context.Context, query *archive.Query, where *search.Whereabouts) (map[uuid.UUID]string, error) {
	titles := map[uuid.UUID]string{}
	var ids []uuid.UUID // those used last first
	err := batchdb.ForEach(ctx, batchdb.Of(l.archive.runner, l.workspace), func(row pgx.CollectableRow) error {
		var id uuid.UUID
		var title string
		if err := row.Scan(&id, &title); err != nil {
			return err
		}
		if where.Names(title) >= leastNamed {
			titles[id] = title
			ids = append(ids, id)
		}
		return nil
	}, sqlTitles, l.workspace, l.keys, mostTitles, query.EndUser, orNull(query.Project))
	slices.SortStableFunc(ids, func(a, b uuid.UUID) int { return cmp.Compare(where.Names(titles[b]), where.Names(titles[a])) })
	ids = ids[:min(len(ids), mostNamed)]
	maps.DeleteFunc(titles, func(id uuid.UUID, _ string) bool { return !slices.Contains(ids, id) })
	return titles, err
}
