package web

import (
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/jump"
	"palimpsest/web/live"
	"palimpsest/web/paths"
	"palimpsest/web/patterns"
)

// everywhere adds what was learnt in the workspace, and what every page uses: the way
// to any other, and news of what happens.
func (s *Server) everywhere(pages *echo.Group) {
	// Patterns
	rules := patterns.New(s.deps.Patterns, s.deps.Data, s.deps.Audit, s.config.Now)
	pages.GET(paths.Patterns, s.as(tenants.ReadConfig, rules.List))
	pages.GET(paths.PatternsCSV, s.as(tenants.ReadConfig, rules.CSV))
	pages.GET(paths.NewPattern, s.as(tenants.ManagePatterns, rules.New))
	pages.POST(paths.Patterns, s.as(tenants.ManagePatterns, rules.Add))
	pages.GET(paths.Patterns+"/:id", s.as(tenants.ReadConfig, rules.Show))
	pages.POST(paths.Patterns+"/:id/approve", s.as(tenants.ManagePatterns, rules.Approve))
	pages.POST(paths.Patterns+"/:id/disable", s.as(tenants.ManagePatterns, rules.Disable))
	pages.GET(paths.Patterns+"/:id/edit", s.as(tenants.ManagePatterns, rules.Edit))
	pages.POST(paths.Patterns+"/:id/edit", s.as(tenants.ManagePatterns, rules.Save))
	pages.GET(paths.Patterns+"/:id/delete", s.as(tenants.ManagePatterns, rules.ConfirmDelete))
	pages.POST(paths.Patterns+"/:id/delete", s.as(tenants.ManagePatterns, rules.Delete))

	// Jump
	anywhere := jump.New(jump.Deps{
		Sessions: s.deps.Sessions, APIKeys: s.deps.APIKeys, ProviderKeys: s.deps.ProviderKeys, Readers: s.deps.Data,
		Searcher: s.deps.Searcher, Log: s.config.Log, Now: s.config.Now,
	})
	pages.GET(paths.Jump, s.as(tenants.ReadMetrics, anywhere.Show))

	// Live
	if s.deps.Live != nil {
		pages.GET(paths.Live, s.as(tenants.ReadMetrics, live.New(s.deps.Live, s.stillIn).Stream))
	}
}

// stillIn returns nil while who opened a stream may go on reading it: they are logged
// in, in the workspace, and may see its figures. Otherwise it is tenants.ErrLoginEnded.
func (s *Server) stillIn(c echo.Context, who tenants.Principal) error {
	now, err := s.principal(c)
	switch {
	case err != nil:
		return err
	case now.Workspace.ID != who.Workspace.ID, !now.Role.May(tenants.ReadMetrics), now.Workspace.Suspension != nil:
		return tenants.ErrLoginEnded
	}
	return nil
}
