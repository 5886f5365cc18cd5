package webtest

import (
	"testing"
	"time"

	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/web"
	"palimpsest/web/live"
)

// everywhere is what every page uses, and what was learned.
type everywhere struct {
	Live    *live.Hub         // hears of every recorded exchange
	Index   *archivedb.Index  // what was said is found once it is indexed
	Learned *patternsdb.Store // what was learned
}

// useEverywhere makes it, and has the dashboard use it.
func (p *Product) useEverywhere(t testing.TB, deps *web.Deps) {
	t.Helper()
	p.everywhere = everywhere{
		Live: live.NewHub(), Learned: patternsdb.New(p.DB),
		Index: archivedb.NewIndex(p.Archive, formats.Parse),
	}
	deps.Live, deps.Searcher, deps.Patterns = p.Live, p.Index, p.Learned
}

// Learn keeps a rule that was found in the person's newest session as a candidate.
func (p *Person) Learn(text string) patterns.Pattern {
	p.t.Helper()
	ctx := p.t.Context()
	wanted := patterns.Pattern{Kind: patterns.Convention, Text: text, When: patterns.When{Terms: patterns.Terms(text)}}
	added, err := p.Learned.Add(ctx, p.Workspace.ID, wanted, time.Now().UTC())
	if err != nil {
		p.t.Fatal(err)
	}
	owner, newest := p.Database.Owner(p.t), p.Newest()
	const found = `UPDATE patterns SET source = 'mined', status = 'candidate', created_by = NULL, edited_by = NULL WHERE workspace_id = $1 AND id = $2`
	if _, err := owner.Exec(ctx, found, p.Workspace.ID, added.ID); err != nil {
		p.t.Fatal(err)
	}
	const evidence = `INSERT INTO pattern_evidence (workspace_id, pattern_id, lane_id, message, session_id, hash, at)
		SELECT $1, $2, l.id, 0, l.session_id, sha256('said'), now() FROM lanes l WHERE l.workspace_id = $1 AND l.session_id = $3 LIMIT 1`
	if _, err := owner.Exec(ctx, evidence, p.Workspace.ID, added.ID, newest.ID); err != nil {
		p.t.Fatal(err)
	}
	learned, err := p.Learned.Pattern(ctx, p.Workspace.ID, added.ID)
	if err != nil || learned.Sessions != 1 {
		p.t.Fatalf("learned %+v, %v", learned, err)
	}
	return learned
}
