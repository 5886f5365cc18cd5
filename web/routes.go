package web

import (
	"github.com/labstack/echo/v4"

	"palimpsest/static"
	"palimpsest/tenants"
	"palimpsest/web/account"
	"palimpsest/web/audit"
	"palimpsest/web/billing"
	"palimpsest/web/devmail"
	"palimpsest/web/docs"
	"palimpsest/web/identity"
	"palimpsest/web/invite"
	"palimpsest/web/keys"
	"palimpsest/web/layout"
	"palimpsest/web/members"
	"palimpsest/web/operator"
	"palimpsest/web/overview"
	"palimpsest/web/paths"
	"palimpsest/web/patterns"
	"palimpsest/web/pipelines"
	"palimpsest/web/providers"
	"palimpsest/web/requests"
	"palimpsest/web/session"
	"palimpsest/web/sessions"
	"palimpsest/web/settings"
	"palimpsest/web/tuning"
	"palimpsest/web/workspaces"
)

// Register adds the dashboard's routes to e. No middleware of the dashboard
// touches other routes.
func (s *Server) Register(e *echo.Echo) {
	e.GET(static.Prefix+"*", echo.WrapHandler(static.Handler()))
	e.HEAD(static.Prefix+"*", echo.WrapHandler(static.Handler()))

	if s.deps.People.Visitor != nil {
		e.Use(s.onlyLook())
	}
	pages := e.Group("", s.headers, s.labeled, s.errors, s.sameOrigin, s.limit)

	s.strangers(pages)
	s.people(pages)
	s.work(pages)
	s.workspace(pages)
	s.registerAlerts(pages)
	s.registerOperator(pages)
	s.everywhere(pages)
}

// strangers adds the pages for people without a login.
func (s *Server) strangers(pages *echo.Group) {
	// Identity
	door := identity.New(s.deps.People.Identity, s.deps.People.Passkeys, s.cookies, s.deps.Installation.Mails != nil, s.config.Log)
	pages.GET(paths.Home, s.home)
	pages.GET(paths.SignUp, s.guest(door.SignUpForm))
	pages.POST(paths.SignUp, door.SignUp)
	pages.GET(paths.LogIn, s.guest(door.LogInForm))
	pages.POST(paths.LogIn, door.LogIn)
	pages.GET(paths.LogInCode, s.guest(door.CodeForm))
	pages.POST(paths.LogInCode, door.Code)
	pages.POST(paths.PasskeyOptions, door.PasskeyOptions)
	pages.POST(paths.LogInPasskey, door.Passkey)
	pages.POST(paths.CodePasskeyOptions, door.CodePasskeyOptions)
	pages.POST(paths.CodePasskey, door.CodePasskey)
	pages.POST(paths.LogOut, s.person(door.LogOut))
	pages.POST(paths.Theme, s.setTheme)

	manual := docs.New(s.config.Version)
	pages.GET(paths.Docs, s.maybe(manual.List))
	pages.GET(paths.Docs+"/:page", s.maybe(manual.Show))

	// Links in mails
	pages.GET(paths.Reset, door.ResetForm)
	pages.POST(paths.Reset, door.Reset)
	pages.GET(paths.Reset+"/:secret", door.Open(paths.NewPassword))
	pages.GET(paths.NewPassword, door.NewPasswordForm)
	pages.POST(paths.NewPassword, door.NewPassword)
	pages.GET(paths.Verify, door.VerifyForm)
	pages.POST(paths.Verify, door.Verify)
	pages.GET(paths.Verify+"/:secret", door.Open(paths.ConfirmEmail))
	pages.GET(paths.ConfirmEmail, door.ConfirmForm)
	pages.POST(paths.ConfirmEmail, door.Confirm)
	pages.GET(paths.DevMail+"/:token", devmail.New(s.deps.Installation.Mails, s.config.MailToken, s.config.PublicURL, s.config.Now).Show)
}

// people adds the pages of accounts, members and workspaces.
func (s *Server) people(pages *echo.Group) {
	// Account
	s.registerFactors(pages)
	own := account.New(s.deps.People.Identity, s.cookies, s.deps.Installation.Mails != nil, s.config.Now)
	pages.GET(paths.Account, s.as(tenants.Enter, own.Show))
	pages.POST(paths.Password, s.as(tenants.Enter, own.Password))
	pages.POST(paths.Email, s.as(tenants.Enter, own.Email))
	pages.POST(paths.Verification, s.as(tenants.Enter, own.Verification))
	pages.POST(paths.EndLogins, s.as(tenants.Enter, own.EndLogins))
	pages.POST(paths.DeleteAccount, s.as(tenants.Enter, own.Delete))
	pages.POST(paths.AccountLogins+"/:id/end", s.as(tenants.Enter, own.EndLogin))

	// Members
	team := members.New(s.deps.People.Members, s.deps.People.Invitations, s.deps.Traffic.Usage, s.config.Now)
	pages.GET(paths.Members, s.as(tenants.ManageMembers, team.List))
	pages.GET(paths.MembersCSV, s.as(tenants.ManageMembers, team.CSV))
	pages.GET(paths.InvitationsCSV, s.as(tenants.ManageMembers, team.InvitationsCSV))
	pages.GET(paths.InviteMembers, s.as(tenants.ManageMembers, team.New))
	pages.POST(paths.InviteMembers, s.as(tenants.ManageMembers, team.Invite))
	pages.POST(paths.Members+"/invitations/:id/resend", s.as(tenants.ManageMembers, team.Resend))
	pages.POST(paths.Members+"/invitations/:id/revoke", s.as(tenants.ManageMembers, team.Revoke))
	pages.GET(paths.Members+"/:id/role", s.as(tenants.ManageMembers, team.AskRole))
	pages.POST(paths.Members+"/:id/role", s.as(tenants.ManageMembers, team.ChangeRole))
	pages.GET(paths.Members+"/:id/remove", s.as(tenants.ManageMembers, team.ConfirmRemove))
	pages.POST(paths.Members+"/:id/remove", s.as(tenants.ManageMembers, team.Remove))

	// Workspaces
	spaces := workspaces.New(s.deps.Administration.Workspaces, s.deps.Gateway.Pipelines)
	pages.GET(paths.Workspaces, s.as(tenants.Enter, spaces.List))
	pages.GET(paths.NewWorkspace, s.person(spaces.New))
	pages.POST(paths.Workspaces, s.person(spaces.Create))
	pages.POST(paths.Workspaces+"/:id/enter", s.person(spaces.Enter))
	pages.GET(paths.RenameWorkspace, s.as(tenants.ManageSettings, spaces.AskName))
	pages.POST(paths.RenameWorkspace, s.as(tenants.ManageSettings, spaces.Rename))
	pages.GET(paths.LeaveWorkspace, s.as(tenants.Enter, spaces.ConfirmLeave))
	pages.POST(paths.LeaveWorkspace, s.as(tenants.Enter, spaces.Leave))
	letIn := invite.New(s.deps.People.Invitations, s.cookies)
	pages.GET(paths.Invite+"/:secret", s.maybe(letIn.Show))
	pages.POST(paths.Invite+"/:secret", s.person(letIn.Accept))
	pages.POST(paths.Invite+"/:secret/signup", s.maybe(letIn.SignUp))
}

// work adds the pages about proxied requests.
func (s *Server) work(pages *echo.Group) {
	// Overview
	home := overview.New(overview.Deps{
		Usage: s.deps.Traffic.Usage, Exchanges: s.deps.Traffic.Exchanges, APIKeys: s.deps.Gateway.APIKeys, ProviderKeys: s.deps.Gateway.ProviderKeys,
		Costs: s.deps.Traffic.Costs, Pipelines: s.deps.Gateway.Pipelines, Readers: s.deps.Administration.Data, TriggerAdvice: s.deps.Gateway.TriggerAdvice, Models: s.deps.Traffic.Models,
		Health: s.deps.Installation.LatestHealth, Defaults: s.config.Defaults, Log: s.config.Log, Now: s.config.Now,
	})
	pages.GET(paths.Overview, s.as(tenants.ReadMetrics, home.Show))
	pages.GET(paths.FirstRequest, s.as(tenants.ReadMetrics, home.FirstRequest))
	pages.GET(paths.OverviewCSV, s.as(tenants.ReadMetrics, home.Data))
	pages.POST(paths.Choose, s.as(tenants.ManagePipeline, home.Choose))
	pages.GET(paths.Spend, s.as(tenants.ReadMetrics, home.Spend))
	pages.GET(paths.SpendCSV, s.as(tenants.ReadMetrics, home.SpendCSV))
	pages.GET(paths.SpendStatement, s.as(tenants.ReadMetrics, home.Statement))
	pages.POST(paths.DismissAdvice, s.as(tenants.ManagePipeline, home.DismissAdvice))

	pages.GET(paths.More, s.as(tenants.Enter, layout.MorePage))

	// Sessions
	s.registerSessions(pages)
	one := session.New(session.Deps{
		Sessions: s.deps.Conversations.Sessions, Costs: s.deps.Traffic.Costs, Archive: s.deps.Conversations.Archive, Audit: s.deps.Administration.Audit, Searcher: s.deps.Conversations.Searcher,
		Pipelines: s.deps.Gateway.Pipelines, APIKeys: s.deps.Gateway.APIKeys, Readers: s.deps.Administration.Data, Stars: s.deps.Conversations.Stars, Comments: s.deps.Conversations.Comments,
		Codecs: s.config.Codecs, Defaults: s.config.Defaults, Now: s.config.Now,
	})
	pages.GET(paths.Sessions+"/:id", s.shared(tenants.ReadSessions, "session", s.holdsSession, one.Show))
	pages.GET(paths.Sessions+"/:id/find", s.as(tenants.ReadSessions, one.Find))
	pages.GET(paths.Sessions+"/:id/continue", s.as(tenants.ReadSessions, one.Continue))
	pages.GET(paths.Sessions+"/:id/count", s.as(tenants.ReadSessions, one.Count))
	pages.GET(paths.Sessions+"/:id/requests.csv", s.as(tenants.ReadSessions, one.Requests))
	pages.GET(paths.Sessions+"/:id/epochs.csv", s.as(tenants.ReadSessions, one.Epochs))
	pages.GET(paths.CompareSessionsWith, s.as(tenants.ReadSessions, one.CompareSessions))
	pages.POST(paths.Sessions+"/:id/star", s.as(tenants.StarSessions, one.Star))
	forms := one.Forms()
	pages.POST(paths.Sessions+"/:id/comments", s.as(tenants.CommentSessions, forms.Comment))
	pages.POST(paths.Sessions+"/:id/comments/:comment/delete", s.as(tenants.CommentSessions, forms.DeleteComment))
	pages.POST(paths.Sessions+"/:id/score", s.as(tenants.CommentSessions, forms.Score))
	pages.POST(paths.Sessions+"/:id/labels", s.as(tenants.CommentSessions, forms.AddLabel))
	pages.POST(paths.Sessions+"/:id/labels/remove", s.as(tenants.CommentSessions, forms.RemoveLabel))
	pages.POST(paths.Sessions+"/:id/pin", s.as(tenants.ChangeSessions, forms.Pin))
	pages.POST(paths.Sessions+"/:id/release", s.as(tenants.ChangeSessions, forms.Release))
	pages.POST(paths.Sessions+"/:id/pin-session", s.as(tenants.ChangeSessions, forms.PinSession))
	pages.POST(paths.Sessions+"/:id/release-session", s.as(tenants.ChangeSessions, forms.ReleaseSession))
	pages.POST(paths.Sessions+"/:id/restore", s.as(tenants.ChangeSessions, forms.Restore))
	pages.GET(paths.Sessions+"/:id/compact", s.as(tenants.ChangeSessions, forms.AskCompact))
	pages.POST(paths.Sessions+"/:id/compact", s.as(tenants.ChangeSessions, forms.Compact))
	pages.GET(paths.Sessions+"/:id/delete", s.as(tenants.DeleteSessions, forms.ConfirmDelete))
	pages.POST(paths.Sessions+"/:id/delete", s.as(tenants.DeleteSessions, forms.Delete))

	s.registerRequests(pages)

	s.registerPipeline(pages)

	s.registerPatterns(pages)
}

// registerPipeline adds the page of the pipeline's settings.
func (s *Server) registerPipeline(pages *echo.Group) {
	pipeline := tuning.New(tuning.Deps{
		Pipelines: s.deps.Gateway.Pipelines, Windows: s.deps.Gateway.ModelWindows, APIKeys: s.deps.Gateway.APIKeys, Usage: s.deps.Traffic.Usage,
		Sessions: s.deps.Conversations.Sessions, Exchanges: s.deps.Traffic.Exchanges, Defaults: s.config.Defaults, Log: s.config.Log, Now: s.config.Now,
	})
	pages.GET(paths.Pipeline, s.as(tenants.ReadConfig, pipeline.Show))
	pages.POST(paths.Pipeline, s.as(tenants.ManagePipeline, pipeline.Save))
	previewer := tuning.NewPreviewer(pipeline, tuning.PreviewDeps{
		Compares: s.deps.Gateway.Preview, Readers: s.deps.Administration.Data, Archive: s.deps.Conversations.Archive, Codecs: s.config.Codecs, Within: s.config.CountWithin, Log: s.config.Log,
	})
	pages.POST(paths.PipelinePreview, s.as(tenants.ReadConfig, previewer.Show))
	pages.POST(paths.PreviewCSV, s.as(tenants.ReadConfig, previewer.CSV))
	pages.GET(paths.WindowsCSV, s.as(tenants.ReadConfig, pipeline.WindowsCSV))
	pages.POST(paths.PipelineWindows, s.as(tenants.ManagePipeline, pipeline.SetWindow))
	pages.POST(paths.RemovePipelineWindow, s.as(tenants.ManagePipeline, pipeline.RemoveWindow))
	s.registerVersions(pages)
}

// registerVersions adds the history of the pipeline, and the pipeline as YAML.
func (s *Server) registerVersions(pages *echo.Group) {
	saved := pipelines.New(s.deps.Gateway.Pipelines, s.config.Defaults)
	pages.GET(paths.PipelineHistory, s.as(tenants.ReadConfig, saved.History))
	pages.GET(paths.PipelineHistory+"/:version", s.as(tenants.ReadConfig, saved.Show))
	pages.GET(paths.PipelineHistory+"/:version/restore", s.as(tenants.ManagePipeline, saved.ConfirmRestore))
	pages.POST(paths.PipelineHistory+"/:version/restore", s.as(tenants.ManagePipeline, saved.Restore))
	pages.GET(paths.PipelineYAML, s.as(tenants.ReadConfig, saved.YAML))
	pages.GET(paths.PipelineFile, s.as(tenants.ReadConfig, saved.Download))
}

// registerPatterns adds the pages of the workspace's rules.
func (s *Server) registerPatterns(pages *echo.Group) {
	rules := patterns.New(s.deps.Gateway.Patterns, s.deps.Administration.Audit, s.config.Now)
	pages.GET(paths.Patterns, s.as(tenants.ReadConfig, rules.List))
	pages.GET(paths.PatternsCSV, s.as(tenants.ReadConfig, rules.CSV))
	pages.GET(paths.NewPattern, s.as(tenants.ManagePatterns, rules.New))
	pages.POST(paths.Patterns, s.as(tenants.ManagePatterns, rules.Add))
	pages.POST(paths.Patterns+"/:id/approve", s.as(tenants.ManagePatterns, rules.Approve))
	pages.POST(paths.Patterns+"/:id/disable", s.as(tenants.ManagePatterns, rules.Disable))
	pages.GET(paths.Patterns+"/:id/edit", s.as(tenants.ManagePatterns, rules.Edit))
	pages.POST(paths.Patterns+"/:id/edit", s.as(tenants.ManagePatterns, rules.Save))
	pages.GET(paths.Patterns+"/:id/delete", s.as(tenants.ManagePatterns, rules.ConfirmDelete))
	pages.POST(paths.Patterns+"/:id/delete", s.as(tenants.ManagePatterns, rules.Delete))
}

// registerSessions adds the list of sessions.
func (s *Server) registerSessions(pages *echo.Group) {
	list := sessions.New(sessions.Deps{
		Sessions: s.deps.Conversations.Sessions, Exchanges: s.deps.Traffic.Exchanges, Readers: s.deps.Administration.Data, APIKeys: s.deps.Gateway.APIKeys,
		Searcher: s.deps.Conversations.Searcher, Changes: s.deps.Administration.Audit, Stars: s.deps.Conversations.Stars, Comments: s.deps.Conversations.Comments,
		Log: s.config.Log, Now: s.config.Now,
	})
	pages.GET(paths.Sessions, s.as(tenants.ReadSessions, hashed(list.Show)))
	pages.GET(paths.SessionsCSV, s.as(tenants.ReadSessions, hashed(list.CSV)))
	pages.GET(paths.DeleteSessions, s.as(tenants.DeleteSessions, list.ConfirmDelete))
	pages.POST(paths.DeleteSessions, s.as(tenants.DeleteSessions, list.Delete))
	pages.GET(paths.EraseUser, s.as(tenants.DeleteSessions, hashed(list.ConfirmErase)))
	pages.POST(paths.EraseUser, s.as(tenants.DeleteSessions, list.Erase))
	pages.GET(paths.ExportSessions, s.as(tenants.ReadArchive, hashed(list.Export)))
}

// workspace adds the pages of a workspace's settings.
func (s *Server) workspace(pages *echo.Group) {
	// API keys
	apiKeys := keys.New(keys.Config{PublicURL: s.config.PublicURL, Log: s.config.Log, Now: s.config.Now}, s.deps.Gateway.APIKeys, s.deps.Traffic.Usage, s.deps.Traffic.Exchanges)
	pages.GET(paths.Keys, s.as(tenants.ReadConfig, apiKeys.List))
	pages.GET(paths.KeysCSV, s.as(tenants.ReadConfig, apiKeys.CSV))
	pages.GET(paths.NewKey, s.as(tenants.CreateKeys, apiKeys.New))
	pages.POST(paths.Keys, s.as(tenants.CreateKeys, apiKeys.Create))
	pages.GET(paths.Keys+"/:id/use", s.as(tenants.ReadConfig, apiKeys.Use))
	pages.GET(paths.Keys+"/:id/edit", s.as(tenants.CreateKeys, apiKeys.Edit))
	pages.POST(paths.Keys+"/:id/edit", s.as(tenants.CreateKeys, apiKeys.Change))
	pages.GET(paths.Keys+"/:id/rotate", s.as(tenants.CreateKeys, apiKeys.ConfirmRotate))
	pages.POST(paths.Keys+"/:id/rotate", s.as(tenants.CreateKeys, apiKeys.Rotate))
	pages.GET(paths.Keys+"/:id/revoke", s.as(tenants.CreateKeys, apiKeys.ConfirmRevoke))
	pages.POST(paths.Keys+"/:id/revoke", s.as(tenants.CreateKeys, apiKeys.Revoke))
	terminal := keys.NewTerminal(s.deps.People.Devices, s.config.Now)
	pages.GET(paths.Device, s.person(terminal.Ask))
	pages.POST(paths.CheckDevice, s.person(terminal.Check))
	pages.POST(paths.DecideDevice, s.person(terminal.Decide))

	// Providers
	providerKeys := providers.New(s.deps.Gateway.ProviderKeys, s.config.Now)
	pages.GET(paths.Providers, s.as(tenants.ReadConfig, providerKeys.List))
	pages.GET(paths.ProvidersCSV, s.as(tenants.ReadConfig, providerKeys.CSV))
	pages.GET(paths.NewProvider, s.as(tenants.ManageProviders, providerKeys.New))
	pages.POST(paths.Providers, s.as(tenants.ManageProviders, providerKeys.Add))
	pages.POST(paths.Providers+"/:id/test", s.as(tenants.ManageProviders, providerKeys.Test))
	pages.GET(paths.Providers+"/:id/edit", s.as(tenants.ManageProviders, providerKeys.Edit))
	pages.POST(paths.Providers+"/:id/edit", s.as(tenants.ManageProviders, providerKeys.Save))
	pages.GET(paths.Providers+"/:id/replace", s.as(tenants.ManageProviders, providerKeys.AskReplace))
	pages.POST(paths.Providers+"/:id/replace", s.as(tenants.ManageProviders, providerKeys.Replace))
	pages.GET(paths.Providers+"/:id/remove", s.as(tenants.ManageProviders, providerKeys.ConfirmRemove))
	pages.POST(paths.Providers+"/:id/remove", s.as(tenants.ManageProviders, providerKeys.Remove))

	// Billing
	bills := billing.New(s.deps.Administration.Billing, s.config.Log, s.config.Now)
	pages.GET(paths.Billing, s.as(tenants.ManageBilling, bills.Show))
	pages.GET(paths.InvoicesCSV, s.as(tenants.ManageBilling, bills.InvoicesCSV))
	pages.POST(paths.BillingCheckout, s.as(tenants.ManageBilling, bills.Checkout))
	pages.POST(paths.BillingPortal, s.as(tenants.ManageBilling, bills.Portal))

	// Audit
	changes := audit.New(s.deps.Administration.Audit, s.config.Defaults, s.config.Now)
	pages.GET(paths.Audit, s.as(tenants.ReadAudit, changes.Show))

	// Settings
	data := settings.New(settings.Deps{
		Data: s.deps.Administration.Data, Members: s.deps.People.Members, ProviderKeys: s.deps.Gateway.ProviderKeys, Deletion: s.deps.Administration.Deletion, ImportConfig: s.deps.Administration.ImportConfig,
		Log: s.config.Log, Now: s.config.Now,
	})
	pages.GET(paths.Settings, s.as(tenants.ManageSettings, data.Show))
	pages.POST(paths.Settings, s.as(tenants.ManageSettings, data.Save))
	pages.POST(paths.Retention, s.as(tenants.ManageSettings, data.SaveRetention))
	pages.POST(paths.Budgets, s.as(tenants.ManageSettings, data.SetBudget))
	pages.POST(paths.Prices, s.as(tenants.ManageSettings, data.SetPrice))
	pages.POST(paths.RemovePrice, s.as(tenants.ManageSettings, data.RemovePrice))
	pages.POST(paths.ModelLimits, s.as(tenants.ManageSettings, data.SetLimit))
	pages.POST(paths.RemoveLimit, s.as(tenants.ManageSettings, data.RemoveLimit))
	pages.GET(paths.ImportConfig, s.as(tenants.ManageSettings, data.AskImport))
	pages.POST(paths.ImportConfig, s.as(tenants.ManageSettings, data.Import))
	pages.GET(paths.DeleteWorkspace, s.as(tenants.DeleteWorkspace, data.ConfirmDelete))
	pages.POST(paths.DeleteWorkspace, s.as(tenants.DeleteWorkspace, data.Delete))
}

// registerRequests adds the pages of requests.
func (s *Server) registerRequests(pages *echo.Group) {
	exchanges := requests.New(requests.Deps{
		Exchanges: s.deps.Traffic.Exchanges, APIKeys: s.deps.Gateway.APIKeys, ProviderKeys: s.deps.Gateway.ProviderKeys, Costs: s.deps.Traffic.Costs, Data: s.deps.Administration.Data,
		Keys: s.deps.Conversations.ArchiveKeys, Archive: s.deps.Conversations.Archive,
		Resending: requests.Resending{Resend: s.deps.Traffic.Resend, Models: s.deps.Traffic.Models, Prices: s.deps.Traffic.Prices}, Audit: s.deps.Administration.Audit, PublicURL: s.config.PublicURL, Log: s.config.Log, Now: s.config.Now,
	})
	pages.GET(paths.Requests, s.as(tenants.ReadMetrics, hashed(exchanges.List)))
	pages.GET(paths.CompareWith, s.as(tenants.ReadMetrics, exchanges.Compare))
	pages.GET(paths.Requests+"/:id", s.shared(tenants.ReadMetrics, "request", s.holdsRequest, exchanges.Show))
	pages.POST(paths.Requests+"/:id/again", s.as(tenants.ReadArchive, exchanges.Again))
}

// registerOperator adds the pages for operators of the installation.
func (s *Server) registerOperator(pages *echo.Group) {
	runs := operator.New(s.deps.Installation.Operator, s.deps.Installation.Health, s.config.Log, s.config.Now)
	pages.GET(paths.Operator, s.operator(runs.List))
	pages.GET(paths.OperatorCSV, s.operator(runs.CSV))
	pages.GET(paths.OperatorLogCSV, s.operator(runs.LogCSV))
	pages.GET(paths.Operator+"/workspaces/:id/suspend", s.operator(runs.Ask))
	pages.POST(paths.Operator+"/workspaces/:id/suspend", s.operator(runs.Suspend))
	pages.GET(paths.Operator+"/workspaces/:id/resume", s.operator(runs.Ask))
	pages.POST(paths.Operator+"/workspaces/:id/resume", s.operator(runs.Resume))
}
