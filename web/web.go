package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"palimpsest/pipeline/session/sessiondb"

	"palimpsest/billing"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
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

// Deps are the stores that the pages read and change. What is not optional must be set.
type Deps struct {
	People
	Gateway
	Conversations
	Traffic
	Administration
	Installation

	Live *live.Hub // optional: without it, pages do not hear of anything
}

// People are who logs in, and who belongs to a workspace.
type People struct {
	Identity    tenants.Identity
	SignOn      tenants.SingleSignOn
	Passkeys    tenants.Passkeys
	Members     tenants.Members
	Invitations tenants.Invitations
	Devices     *tenants.DeviceLogins
}

// Gateway is what a workspace's requests go through on their way to a provider.
type Gateway struct {
	APIKeys       tenants.APIKeys
	ProviderKeys  tenants.ProviderKeys
	Pipelines     tenants.Pipelines
	Preview       *preview.Preview
	TriggerAdvice *previewdb.Store
	ModelWindows  tenants.ModelWindows
	Patterns      *patternsdb.Store
}

// Conversations are what was said, and what people noted of it.
type Conversations struct {
	Sessions    session.Records
	Archive     archive.Reader
	ArchiveKeys *archive.Keys    // optional: without them, what is sealed beside messages is not shown
	Searcher    archive.Searcher // optional: without it, what was said is not searched
	Stars       tenants.Stars
	Comments    tenants.Comments
}

// Traffic is what is counted of requests, and sends one again.
type Traffic struct {
	Exchanges tenants.Exchanges
	Usage     tenants.UsageReader
	Costs     sessiondb.Browser
	Alerts    tenants.Alerts

	Resend requests.Resend // optional: without it, nothing is sent again
	Models *tokens.Models  // optional: without them, what sending again costs is not said
	Prices requests.Prices // optional: list prices hold without it
}

// Administration is a workspace as a whole: its data, who changed what, and what it pays.
type Administration struct {
	Workspaces   tenants.Workspaces
	Data         tenants.Data
	Audit        tenants.AuditLog
	Deletion     tenants.Deletion
	ImportConfig settings.ImportConfig
	Billing      *billing.Service
}

// Installation is what its operators see.
type Installation struct {
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
