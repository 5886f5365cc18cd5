package web

import (
	"github.com/labstack/echo/v4"

	"palimpsest/static"
	"palimpsest/tenants"
	"palimpsest/web/billing"
	"palimpsest/web/identity"
	"palimpsest/web/keys"
	"palimpsest/web/layout"
	"palimpsest/web/overview"
	"palimpsest/web/paths"
	"palimpsest/web/providers"
	"palimpsest/web/session"
	"palimpsest/web/sessions"
	"palimpsest/web/tuning"
)

// Register adds the dashboard's routes to e. No middleware of the dashboard
// touches other routes.
func (s *Server) Register(e *echo.Echo) {
	e.GET(static.Prefix+"*", echo.WrapHandler(static.Handler()))
	e.HEAD(static.Prefix+"*", echo.WrapHandler(static.Handler()))

	pages := e.Group("", s.headers, s.errors, s.sameOrigin, s.limit)

	// Who somebody is
	account := identity.New(s.deps.Identity, s.cookies)
	pages.GET(paths.Home, s.home)
	pages.GET(paths.SignUp, s.guest(account.SignUpForm))
	pages.POST(paths.SignUp, account.SignUp)
	pages.GET(paths.LogIn, s.guest(account.LogInForm))
	pages.POST(paths.LogIn, account.LogIn)
	pages.POST(paths.LogOut, s.as(tenants.Enter, account.LogOut))
	pages.POST(paths.Theme, s.setTheme)

	// Overview
	home := overview.New(overview.Deps{
		Usage: s.deps.Usage, Exchanges: s.deps.Exchanges, APIKeys: s.deps.APIKeys, ProviderKeys: s.deps.ProviderKeys,
		Sessions: s.deps.Sessions, Pipelines: s.deps.Pipelines, Defaults: s.config.Defaults, Log: s.config.Log, Now: s.config.Now,
	})
	pages.GET(paths.Overview, s.as(tenants.ReadMetrics, home.Show))
	pages.GET(paths.FirstRequest, s.as(tenants.ReadMetrics, home.FirstRequest))

	pages.GET(paths.More, s.as(tenants.Enter, layout.MorePage))

	// API keys
	apiKeys := keys.New(keys.Config{PublicURL: s.config.PublicURL, Log: s.config.Log, Now: s.config.Now}, s.deps.APIKeys, s.deps.Usage)
	pages.GET(paths.Keys, s.as(tenants.ReadConfig, apiKeys.List))
	pages.GET(paths.NewKey, s.as(tenants.CreateKeys, apiKeys.New))
	pages.POST(paths.Keys, s.as(tenants.CreateKeys, apiKeys.Create))
	pages.GET(paths.Keys+"/:id/revoke", s.as(tenants.CreateKeys, apiKeys.ConfirmRevoke))
	pages.POST(paths.Keys+"/:id/revoke", s.as(tenants.CreateKeys, apiKeys.Revoke))

	// Providers
	providerKeys := providers.New(s.deps.ProviderKeys, s.config.Now)
	pages.GET(paths.Providers, s.as(tenants.ReadConfig, providerKeys.List))
	pages.GET(paths.NewProvider, s.as(tenants.ManageProviders, providerKeys.New))
	pages.POST(paths.Providers, s.as(tenants.ManageProviders, providerKeys.Add))
	pages.POST(paths.Providers+"/:id/test", s.as(tenants.ManageProviders, providerKeys.Test))
	pages.GET(paths.Providers+"/:id/remove", s.as(tenants.ManageProviders, providerKeys.ConfirmRemove))
	pages.POST(paths.Providers+"/:id/remove", s.as(tenants.ManageProviders, providerKeys.Remove))

	// Pipeline
	pipeline := tuning.New(s.deps.Pipelines, s.config.Defaults)
	pages.GET(paths.Pipeline, s.as(tenants.ReadConfig, pipeline.Show))
	pages.POST(paths.Pipeline, s.as(tenants.ManagePipeline, pipeline.Save))

	// Billing
	bills := billing.New(s.deps.Billing, s.config.Log, s.config.Now)
	pages.GET(paths.Billing, s.as(tenants.ManageBilling, bills.Show))
	pages.POST(paths.BillingCheckout, s.as(tenants.ManageBilling, bills.Checkout))
	pages.POST(paths.BillingPortal, s.as(tenants.ManageBilling, bills.Portal))

	// Sessions
	list := sessions.New(s.deps.Sessions, s.deps.Exchanges, s.config.Log, s.config.Now)
	pages.GET(paths.Sessions, s.as(tenants.ReadSessions, list.Show))
	one := session.New(session.Deps{
		Sessions: s.deps.Sessions, Archive: s.deps.Archive, Exchanges: s.deps.Exchanges,
		Pipelines: s.deps.Pipelines, APIKeys: s.deps.APIKeys,
		Codecs: s.config.Codecs, Defaults: s.config.Defaults, Now: s.config.Now,
	})
	pages.GET(paths.Sessions+"/:id", s.as(tenants.ReadSessions, one.Show))
}
