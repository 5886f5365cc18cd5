package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"palimpsest/billing"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/web/live"
	"palimpsest/web/operator"
	"palimpsest/web/requests"
	"palimpsest/web/settings"
)

// Config says how the dashboard is set up.
type Config struct {
	// PublicURL is where people and clients reach the product, without a slash at
	// its end. It stands in snippets and decides whether cookies are Secure.
	PublicURL string

	// Defaults is the pipeline of a workspace that has set none.
	Defaults pipeline.Layer

	// Codecs read the archived messages of each format.
	Codecs map[conversation.Format]wire.Codec

	// Contact says whom to ask about a suspension; empty: the person who runs the installation.
	Contact string

	// Demo says how to log in to an installation whose data was made up, which every
	// page then says as well; empty if it is not one.
	Demo string

	// MailToken is the last part of the address at which mails are shown that are not
	// sent; empty: mails are not shown.
	MailToken string

	// Version is that of the program, which the documentation shows.
	Version string

	// JumpWithin is what a group of the palette takes at most, as jump.Deps have it.
	JumpWithin time.Duration

	// CountWithin is what counting identifiers takes at most, as tuning.PreviewDeps have it.
	CountWithin time.Duration

	Log *slog.Logger     // nil: nowhere
	Now func() time.Time // nil: time.Now
}

// Deps are the stores that the pages read and change. All but Mails, ArchiveKeys,
// SendAgain, Models, Searcher and Live must be set.
type Deps struct {
	Identity      tenants.Identity
	APIKeys       tenants.APIKeys
	ProviderKeys  tenants.ProviderKeys
	Pipelines     tenants.Pipelines
	Preview       *preview.Preview
	TriggerAdvice *previewdb.Store
	ModelWindows  tenants.ModelWindows
	Usage         tenants.UsageReader
	Sessions      session.Records
	Costs         cost.Records
	Exchanges     tenants.Exchanges
	Archive       archive.Reader
	ArchiveKeys   *archive.Keys // optional: without them, what is sealed beside messages is not shown
	Billing       *billing.Service
	Members       tenants.Members
	Workspaces    tenants.Workspaces
	Invitations   tenants.Invitations
	Data          tenants.Data
	Audit         tenants.AuditLog
	Deletion      tenants.Deletion
	ImportConfig  settings.ImportConfig
	SignOn        tenants.SingleSignOn
	Alerts        tenants.Alerts
	Stars         tenants.Stars
	Comments      tenants.Comments
	Passkeys      tenants.Passkeys

	SendAgain requests.SendAgain // optional: without it, nothing is sent again
	Models    *tokens.Models     // optional: without them, what sending again costs is not said

	Patterns *patternsdb.Store
	Searcher archive.Searcher // optional: without it, what was said is not searched
	Views    tenants.Views
	Live     *live.Hub // optional: without it, pages do not hear of anything

	Operator tenants.Operators
	Health   operator.Health

	// LatestHealth is what Health has found last, without looking again.
	LatestHealth operator.Health

	Mails func(context.Context) ([]tenants.WaitingMail, error) // that are kept, the newest first; nil where mails are sent
}

// Server answers the dashboard's requests.
type Server struct {
	gate

	config  Config
	deps    Deps
	origins *http.CrossOriginProtection
}

// New returns the dashboard.
func New(config Config, deps Deps) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Server{
		gate: gate{
			identity: deps.Identity, billing: deps.Billing, data: deps.Data, cookies: tenants.NewCookies(config.PublicURL), log: config.Log,
		},
		config: config, deps: deps, origins: http.NewCrossOriginProtection(),
	}
}
