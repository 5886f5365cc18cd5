package web

import (
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/factor"
	"palimpsest/web/passkey"
	"palimpsest/web/paths"
	"palimpsest/web/signon"
)

// registerFactors adds the routes of second factors and passkeys.
func (s *Server) registerFactors(pages *echo.Group) {
	second := factor.New(s.deps.People.Identity, s.config.Now)
	pages.GET(paths.SecondFactor, s.person(second.Show))
	pages.POST(paths.StartFactor, s.person(second.Start))
	pages.GET(paths.FactorImage, s.person(second.Image))
	pages.POST(paths.ConfirmFactor, s.person(second.Confirm))
	pages.POST(paths.RecoveryCodes, s.person(second.Renew))
	pages.POST(paths.RemoveFactor, s.person(second.Remove))

	s.registerPasskeys(pages)

	// Single sign-on
	single := signon.New(s.deps.People.SignOn, s.cookies, s.config.PublicURL, s.config.Log)
	pages.GET(paths.SignOnBegin, single.Ask)
	pages.POST(paths.SignOnBegin, single.Begin)
	pages.GET(paths.SignOnCallback, s.maybe(single.Callback))
	pages.GET(paths.SignOn, s.as(tenants.ManageSignOn, single.Show))
	pages.POST(paths.SignOn, s.as(tenants.ManageSignOn, single.Save))
	pages.POST(paths.RemoveSignOn, s.as(tenants.ManageSignOn, single.Remove))
	pages.POST(paths.Domains, s.as(tenants.ManageSignOn, single.Claim))
	pages.POST(paths.ProveDomain, s.as(tenants.ManageSignOn, single.Prove))
	pages.POST(paths.RemoveDomain, s.as(tenants.ManageSignOn, single.RemoveDomain))
}

// registerPasskeys adds the routes to create and manage passkeys.
func (s *Server) registerPasskeys(pages *echo.Group) {
	own := passkey.New(s.deps.People.Passkeys, s.cookies, s.config.Log, s.config.Now)
	pages.GET(paths.Passkeys, s.person(own.Show))
	pages.POST(paths.Passkeys, s.person(own.Start))
	pages.GET(paths.NewPasskey, s.person(own.New))
	pages.POST(paths.NewPasskey, s.person(own.Register))
	pages.POST(paths.PasskeyCodes, s.person(own.RenewCodes))
	pages.GET(paths.Passkeys+"/:id/rename", s.person(own.AskName))
	pages.POST(paths.Passkeys+"/:id/rename", s.person(own.Rename))
	pages.GET(paths.Passkeys+"/:id/remove", s.person(own.ConfirmRemove))
	pages.POST(paths.Passkeys+"/:id/remove", s.person(own.Remove))
}
