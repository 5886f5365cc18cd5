// Package manage is the product's JSON API: the actions of the dashboard, for scripts. Each noun has a file;
// openapi.yaml describes every route.
package manage

import (
	_ "embed"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// Config holds the API's dependencies. Every field but ArchiveKeys, Version, Log and Now must be set.
type Config struct {
	// Defaults is the pipeline of a workspace without its own.
	Defaults pipeline.Layer

	// Codecs read the archived messages of each format.
	Codecs map[conversation.Format]wire.Codec

	People         People
	Gateway        Gateway
	Conversations  Conversations
	Traffic        Traffic
	Administration Administration

	// Version is the program's version.
	Version string

	Log *slog.Logger
	Now func() time.Time
}

// People are the callers, and the members of a workspace.
type People struct {
	Identity    tenants.Identity
	Cookies     tenants.Cookies
	Keys        tenants.KeyAuthenticator
	SignOn      tenants.SingleSignOn
	Members     tenants.Members
	Invitations tenants.Invitations
	Operators   tenants.Operators
	Devices     *tenants.DeviceLogins
}

// Gateway configures the way of a workspace's requests to a provider.
type Gateway struct {
	APIKeys      tenants.APIKeys
	ProviderKeys tenants.ProviderKeys
	Pipelines    tenants.Pipelines
	Previews     *preview.Preview
	ModelWindows tenants.ModelWindows
	Patterns     *patternsdb.Store
}

// Conversations are archived messages and people's remarks on them.
type Conversations struct {
	Sessions    session.Records
	Archive     archive.Reader
	ArchiveKeys *archive.Keys // optional: without them, sealed data beside messages is not shown
	Searcher    archive.Searcher
	Stars       tenants.Stars
	Comments    tenants.Comments
}

// Traffic is statistics of requests.
type Traffic struct {
	Exchanges tenants.Exchanges
	Usage     tenants.UsageReader
	Costs     sessiondb.Browser
	Views     tenants.Views
	Alerts    tenants.Alerts
}

// Administration covers a workspace as a whole: its data, audit log and billing.
type Administration struct {
	Workspaces tenants.Workspaces
	Data       tenants.Data
	Audit      tenants.AuditLog
	Deletion   tenants.Deletion
	Billing    Billing
}

// Register adds the API's routes to group, the group of /api/v1.
func Register(group *echo.Group, config Config) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	a := &authorizer{
		identity: config.People.Identity, cookies: config.People.Cookies, keys: config.People.Keys, origins: http.NewCrossOriginProtection(), log: config.Log,
		readers: readers{config.Administration.Data},
	}
	group.Use(a.problems)
	group.GET("/openapi.yaml", openAPI)
	for _, register := range handlers(config) {
		register(group, a)
	}
	group.RouteNotFound("", unknownRoute)
	group.RouteNotFound("/*", unknownRoute)
}

// handlers returns functions that add the routes of each noun.
func handlers(config Config) []func(group *echo.Group, a *authorizer) {
	may, changes := readers{config.Administration.Data}, notes{config.Administration.Audit}
	find := lanes{config.Conversations.Sessions, may}
	files := exportHandler{
		sessions: config.Conversations.Sessions, readers: may, archive: config.Conversations.Archive, audit: config.Administration.Audit, comments: config.Conversations.Comments, codecs: config.Codecs, log: config.Log, now: config.Now,
	}

	return []func(group *echo.Group, a *authorizer){
		accountHandler{config.People.Identity, config.People.Cookies, config.Version}.register,
		deviceHandler{config.People.Devices}.register,
		signOnHandler{config.People.SignOn}.register,
		workspaceHandler{config.Administration.Workspaces, config.Administration.Deletion}.register,
		memberHandler{config.People.Members, config.People.Invitations}.register,
		operatorHandler{config.People.Operators}.register,

		keyHandler{config.Gateway.APIKeys}.register,
		providerKeyHandler{config.Gateway.ProviderKeys, config.Now}.register,
		pipelineHandler{config.Gateway.Pipelines, config.Gateway.Previews, config.Defaults}.register,
		windowHandler{config.Gateway.ModelWindows}.register,
		priceHandler{config.Administration.Data}.register,
		limitHandler{config.Administration.Data}.register,
		patternHandler{config.Gateway.Patterns, changes, config.Now}.register,

		sessionHandler{find, config.Traffic.Costs, remarks{config.Conversations.Stars, config.Conversations.Comments}, changes, config.Now}.register,
		endUserHandler{config.Conversations.Sessions, config.Administration.Audit, config.Now}.register,
		starHandler{config.Conversations.Sessions, config.Conversations.Stars}.register,
		commentHandler{find, config.Conversations.Comments}.register,
		scoreHandler{find, config.Conversations.Comments}.register,
		archiveHandler{find, config.Conversations.Archive, config.Conversations.Searcher, config.Codecs}.register,
		files.register,
		workspaceExportHandler{files, config}.register,
		exchangeHandler{config.Traffic.Exchanges, config.Conversations.Sessions, may, config.Conversations.ArchiveKeys, config.Log}.register,
		usageHandler{config.Traffic.Usage, config.Now}.register,

		dataHandler{config.Administration.Data}.register,
		budgetHandler{config.Administration.Data, config.Now}.register,
		configurationHandler{NewConfigurations(config)}.register,
		alertHandler{config.Traffic.Alerts}.register,
		auditHandler{config.Administration.Audit, config.Log}.register,
		billingHandler{config.Administration.Billing, config.Log}.register,
	}
}

// unknownRoute answers an unknown path.
func unknownRoute(echo.Context) error { return errUnknownRoute }

// Headers forbids caching and content sniffing for every answer below /api/v1, including errors of the
// router. It is for echo.Pre.
func Headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if path := c.Request().URL.Path; path == "/api/v1" || strings.HasPrefix(path, "/api/v1/") {
			header := c.Response().Header()
			header.Set(echo.HeaderCacheControl, "no-store")
			header.Set(echo.HeaderXContentTypeOptions, "nosniff")
		}
		return next(c)
	}
}

//go:embed openapi.yaml
var openAPIDocument []byte //nolint:gochecknoglobals // a file of the program, never changed

func openAPI(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", openAPIDocument)
}
