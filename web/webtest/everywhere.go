package webtest

import (
	"testing"
	"time"

	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/live"
)

// everywhere holds the services that every page uses, and the learned rules.
type everywhere struct {
	Live    *live.Hub         // is notified of every recorded exchange
	Index   *archivedb.Index  // messages are found once they are indexed
	Learned *patternsdb.Store // learned rules
}

// useEverywhere creates these services for the dashboard.
func (p *Product) useEverywhere(t testing.TB, deps *web.Deps) {
	t.Helper()
	p.everywhere = everywhere{
		Live: live.NewHub(), Learned: patternsdb.New(p.DB),
		Index: archivedb.NewIndex(p.Archive, formats.Parse),
	}
	deps.Live, deps.Conversations.Searcher, deps.Gateway.Patterns = p.Live, p.Index, p.Learned
}

// Learn stores a rule of the person.
func (p *Person) Learn(text string) patterns.Pattern {
	p.t.Helper()
	wanted := patterns.Pattern{Kind: patterns.Convention, Text: text, CreatedBy: p.User.ID, When: patterns.When{Terms: patterns.Terms(text)}}
	added, err := p.Learned.Add(p.t.Context(), p.Workspace.ID, wanted, time.Now().UTC())
	if err != nil {
		p.t.Fatal(err)
	}
	return added
}

// SetPipeline saves a pipeline over a version, like the API.
func (p *Person) SetPipeline(over int, yaml string) {
	p.t.Helper()
	next := tenants.PipelineConfig{YAML: yaml, SavedBy: p.User.ID}
	if _, err := p.DB.Pipelines.SavePipeline(p.t.Context(), p.Workspace.ID, over, next); err != nil {
		p.t.Fatal(err)
	}
}
