package manage

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// Config is what the API needs. Every field but ArchiveKeys, Log and Now must be set.
type Config struct {
	// Defaults is the pipeline of a workspace that has set none.
	Defaults pipeline.Layer

	// Codecs read the archived messages of each format.
	Codecs map[conversation.Format]wire.Codec

	Identity     Identity
	Cookies      tenants.Cookies
	Keys         Keys
	APIKeys      APIKeys
	ProviderKeys ProviderKeys
	Pipelines    Pipelines
	ModelWindows ModelWindows
	Patterns     Patterns
	Sessions     Sessions
	Archive      Archive
	ArchiveKeys  *archive.Keys // nil: what is sealed beside messages is not shown
	Searcher     archive.Searcher
	Retentions   Retentions
	Usage        Usage
	People       People
	Invitations  Invitations
	Data         Data
	Audit        Audit
	Deletion     Deletion
	Billing      Billing
	Operator     Operator
	SignOn       SignOn
	Alerts       Alerts
	Stars        tenants.Stars
	Comments     tenants.Comments
	Previewer    Previewer

	Log *slog.Logger
	Now func() time.Time
}

// server answers the requests.
type server struct {
	Config

	origins *http.CrossOriginProtection
}

// Register adds the API's routes to group, which stands for /api/v1.
func Register(group *echo.Group, config Config) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &server{Config: config, origins: http.NewCrossOriginProtection()}
	group.Use(s.problems)

	s.people(group)
	s.config(group)
	s.work(group)
	s.workspace(group)

	group.RouteNotFound("", unknownRoute)
	group.RouteNotFound("/*", unknownRoute)
}

// people adds the routes about people, their accounts and where they belong.
func (s *server) people(group *echo.Group) {
	group.POST("/signup", s.signUp, s.sameOrigin)
	group.POST("/login", s.logIn, s.sameOrigin)
	group.POST("/logout", s.logOut, s.sameOrigin)
	group.GET("/openapi.yaml", s.openAPI)

	group.GET("/me", s.known(s.me))

	group.GET("/workspaces", s.known(s.listWorkspaces))
	group.POST("/workspaces", s.asPerson(s.createWorkspace))
	group.POST("/workspaces/:id/enter", s.asPerson(s.enterWorkspace))
	group.PATCH("/workspaces/:id", s.as(tenants.ManageSettings, s.renameWorkspace))
	group.POST("/workspaces/:id/leave", s.asPerson(s.leaveWorkspace))

	s.registerOperator(group)

	group.GET("/members", s.as(tenants.ManageMembers, s.listMembers))
	group.POST("/members", s.as(tenants.ManageMembers, s.invite))
	group.PATCH("/members/:id", s.as(tenants.ManageMembers, s.changeMember))
	group.DELETE("/members/:id", s.as(tenants.ManageMembers, s.removeMember))

	group.GET("/invitations", s.as(tenants.ManageMembers, s.listInvitations))
	group.POST("/invitations", s.as(tenants.ManageMembers, s.invite))
	group.POST("/invitations/accept", s.asPerson(s.acceptInvitation))
	group.POST("/invitations/:id/resend", s.as(tenants.ManageMembers, s.resendInvitation))
	group.DELETE("/invitations/:id", s.as(tenants.ManageMembers, s.revokeInvitation))

	group.POST("/account/reset", s.ask(s.Identity.AskReset), s.sameOrigin)
	group.POST("/account/reset/confirm", s.confirmReset, s.sameOrigin)
	group.POST("/account/verification", s.ask(s.Identity.AskVerification), s.sameOrigin)
	group.POST("/account/verification/confirm", s.confirmEmail, s.sameOrigin)
	group.PUT("/account/password", s.as(tenants.Enter, person(s.putPassword)))
	group.PUT("/account/email", s.as(tenants.Enter, person(s.putEmail)))
	group.GET("/account/logins", s.as(tenants.Enter, person(s.listLogins)))
	group.DELETE("/account/logins", s.as(tenants.Enter, person(s.endLogins)))
	group.DELETE("/account/logins/:id", s.as(tenants.Enter, person(s.endLogin)))
}

// config adds the routes about what requests go through.
func (s *server) config(group *echo.Group) {
	group.GET("/keys", s.as(tenants.ReadConfig, s.listKeys))
	group.POST("/keys", s.as(tenants.CreateKeys, s.createKey))
	group.PATCH("/keys/:id", s.as(tenants.CreateKeys, s.changeKey))
	group.POST("/keys/:id/rotate", s.as(tenants.CreateKeys, s.rotateKey))
	group.DELETE("/keys/:id", s.as(tenants.CreateKeys, s.revokeKey))

	group.GET("/provider-keys", s.as(tenants.ReadConfig, s.listProviderKeys))
	group.POST("/provider-keys", s.as(tenants.ManageProviders, s.createProviderKey))
	group.PATCH("/provider-keys/:id", s.as(tenants.ManageProviders, s.editProviderKey))
	group.POST("/provider-keys/:id/replace", s.as(tenants.ManageProviders, s.replaceProviderKey))
	group.DELETE("/provider-keys/:id", s.as(tenants.ManageProviders, s.deleteProviderKey))
	group.POST("/provider-keys/:id/test", s.as(tenants.ManageProviders, s.testProviderKey))

	group.GET("/pipeline", s.as(tenants.ReadConfig, s.getPipeline))
	group.PUT("/pipeline", s.as(tenants.ManagePipeline, s.putPipeline))
	group.GET("/pipeline/versions", s.as(tenants.ReadConfig, s.listPipelines))
	group.POST("/pipeline/versions/:version/restore", s.as(tenants.ManagePipeline, s.restorePipeline))
	group.POST("/pipeline/preview", s.as(tenants.ReadConfig, s.previewPipeline))

	group.GET("/models/windows", s.as(tenants.ReadConfig, s.listModelWindows))
	group.PUT("/models/windows/:model", s.as(tenants.ManagePipeline, s.putModelWindow))
	group.DELETE("/models/windows/:model", s.as(tenants.ManagePipeline, s.deleteModelWindow))

	group.GET("/patterns", s.as(tenants.ReadConfig, s.listPatterns))
	group.POST("/patterns", s.as(tenants.ManagePatterns, s.createPattern))
	group.GET("/patterns/:id", s.as(tenants.ReadConfig, s.getPattern))
	group.PATCH("/patterns/:id", s.as(tenants.ManagePatterns, s.changePattern))
	group.DELETE("/patterns/:id", s.as(tenants.ManagePatterns, s.deletePattern))
}

// work adds the routes about what went through the proxy.
func (s *server) work(group *echo.Group) {
	group.GET("/sessions", s.as(tenants.ReadSessions, s.listSessions))
	group.GET("/sessions/export", s.as(tenants.ReadArchive, s.exportSessions))
	group.GET("/sessions/:id", s.as(tenants.ReadSessions, s.getSession))
	group.DELETE("/sessions/:id", s.as(tenants.DeleteSessions, s.deleteSession))
	group.GET("/sessions/:id/turns", s.as(tenants.ReadArchive, s.listTurns))
	group.GET("/sessions/:id/events", s.as(tenants.ReadSessions, s.listEvents))
	group.POST("/sessions/:id/compact", s.as(tenants.ChangeSessions, s.compact))
	group.GET("/sessions/:id/pins", s.as(tenants.ReadSessions, s.listPins))
	group.POST("/sessions/:id/pins", s.as(tenants.ChangeSessions, s.createPin))
	group.DELETE("/sessions/:id/pins/:message", s.as(tenants.ChangeSessions, s.deletePin))
	s.registerStars(group)
	s.registerComments(group)
	group.GET("/sessions/:id/archive/:index", s.as(tenants.ReadArchive, s.getOriginal))
	group.GET("/sessions/:id/export", s.as(tenants.ReadArchive, s.exportSession))

	group.GET("/search", s.as(tenants.ReadArchive, s.search))

	group.GET("/usage", s.as(tenants.ReadMetrics, s.getUsage))
	group.GET("/requests", s.as(tenants.ReadMetrics, s.listRequests))
	group.GET("/requests.csv", s.as(tenants.ReadMetrics, s.downloadRequests))
	group.GET("/requests/:id", s.as(tenants.ReadMetrics, s.getRequest))
}

// workspace adds the routes about the workspace as a whole.
func (s *server) workspace(group *echo.Group) {
	group.GET("/retention", s.as(tenants.ReadConfig, s.getRetention))
	group.PUT("/retention", s.as(tenants.ManageSettings, s.putRetention))

	group.GET("/settings", s.as(tenants.ReadConfig, s.getSettings))
	group.PUT("/settings", s.as(tenants.ManageSettings, s.putSettings))
	group.GET("/config/export", s.as(tenants.ReadConfig, s.exportConfig))
	group.POST("/config/import", s.as(tenants.ManageSettings, s.importConfig))
	s.registerSignOn(group)
	s.registerAlerts(group)
	group.GET("/audit", s.as(tenants.ReadAudit, s.listAudit))
	group.GET("/audit.csv", s.as(tenants.ReadAudit, s.downloadAudit))
	group.GET("/export", s.as(tenants.ExportWorkspace, s.exportWorkspace))
	group.DELETE("/workspace", s.as(tenants.DeleteWorkspace, s.deleteWorkspace))

	group.POST("/billing/checkout", s.as(tenants.ManageBilling, s.openCheckout))
	group.POST("/billing/portal", s.as(tenants.ManageBilling, s.openPortal))
	group.POST("/billing/webhook", s.takeNotice)
}

// unknownRoute answers a path that the API does not have.
func unknownRoute(echo.Context) error { return errUnknownRoute }
