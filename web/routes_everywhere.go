package web

import (
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/jump"
	"palimpsest/web/live"
	"palimpsest/web/paths"
)

// everywhere adds the routes that every page uses: the jump palette and live updates.
func (s *Server) everywhere(pages *echo.Group) {
	// Jump
	anywhere := jump.New(jump.Deps{
		Sessions: s.deps.Conversations.Sessions, APIKeys: s.deps.Gateway.APIKeys, ProviderKeys: s.deps.Gateway.ProviderKeys, Readers: s.deps.Administration.Data,
		Searcher: s.deps.Conversations.Searcher, Log: s.config.Log, Now: s.config.Now, Within: s.config.JumpWithin,
	})
	pages.GET(paths.Jump, s.as(tenants.ReadMetrics, anywhere.Show))

	// Live
	if s.deps.Live != nil {
		pages.GET(paths.Live, s.as(tenants.ReadMetrics, live.New(s.deps.Live, s.stillIn).Stream))
	}
}

// stillIn returns nil while the reader of a stream is logged in, in the workspace, and may see its figures.
// Otherwise it returns tenants.ErrLoginEnded.
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
