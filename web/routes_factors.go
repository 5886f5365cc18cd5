package web

import (
	"github.com/labstack/echo/v4"

	"palimpsest/web/factor"
	"palimpsest/web/paths"
)

// registerFactors adds the routes of what people log in with beside their password.
func (s *Server) registerFactors(pages *echo.Group) {
	second := factor.New(s.deps.Identity, s.config.Now)
	pages.GET(paths.SecondFactor, s.person(second.Show))
	pages.POST(paths.StartFactor, s.person(second.Start))
	pages.GET(paths.FactorImage, s.person(second.Image))
	pages.POST(paths.ConfirmFactor, s.person(second.Confirm))
	pages.POST(paths.RecoveryCodes, s.person(second.Renew))
	pages.POST(paths.RemoveFactor, s.person(second.Remove))
}
