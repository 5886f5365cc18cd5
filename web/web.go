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

// Config configures the dashboard.
type Config struct {
	// PublicURL is the address for people and clients, without a trailing slash. Snippets contain it, and it
	// decides whether cookies are Secure.
	PublicURL string

	// Defaults is the pipeline of a workspace without one of its own.
	Defaults pipeline.Layer

	// Codecs read the archived messages of each format.
	Codecs map[conversation.Format]wire.Codec

	// Contact is the contact for suspensions; "" means the person who runs the installation.
	Contact string

	// Demo tells how to log in to a demo with made-up data. Every page shows it. "" if this is not a demo.
	Demo string

	// PublicDemo is the address of a public demo, which strangers may open from the front page; "" for none.
	PublicDemo string

	// MailToken is the last part of the address that shows unsent mails; "" disables it.
	MailToken string

	// Version is the program's version for the documentation pages.
	Version string

	// JumpWithin limits how long a group of the palette may take, as in jump.Deps.
	JumpWithin time.Duration

	// CountWithin limits how long counting identifiers may take, as in tuning.PreviewDeps.
	CountWithin time.Duration

	Log *slog.Logger     // nil discards it
	Now func() time.Time // nil means time.Now
}

// Deps are the stores that the pages read and change. Fields are required unless marked optional.
type Deps struct {
	People         People
	Gateway        Gateway
	Conversations  Conversations
	Traffic        Traffic
	Administration Administration
	Installation   Installation

	Live *live.Hub // optional: without it, there are no live updates
}

// People are the services for logins and memberships.
type People struct {
	Identity    tenants.Identity
	SignOn      tenants.SingleSignOn
	Passkeys    tenants.Passkeys
	Members     tenants.Members
	Invitations tenants.Invitations
	Devices     *tenants.DeviceLogins

	// Visitor returns who everyone is in a public demo. Optional: without it, people log in.
	Visitor func(context.Context) (tenants.Principal, error)
}

// Gateway configures how a workspace's requests reach a provider.
type Gateway struct {
	APIKeys       tenants.APIKeys
	ProviderKeys  tenants.ProviderKeys
	Pipelines     tenants.Pipelines
	Preview       *preview.Preview
	TriggerAdvice *previewdb.Store
	ModelWindows  tenants.ModelWindows
	Patterns      *patternsdb.Store
}

// Conversations are the recorded messages and people's notes on them.
type Conversations struct {
	Sessions    session.Records
	Archive     archive.Reader
	ArchiveKeys *archive.Keys    // optional: without them, content sealed beside messages is not shown
	Searcher    archive.Searcher // optional: without it, messages are not searched
	Stars       tenants.Stars
	Comments    tenants.Comments
}

// Traffic holds the requests' statistics, and resends a request.
type Traffic struct {
	Exchanges tenants.Exchanges
	Usage     tenants.UsageReader
	Costs     sessiondb.Browser
	Alerts    tenants.Alerts

	Resend requests.Resend // optional: without it, requests are not resent
	Models *tokens.Models  // optional: without them, the cost of resending is not shown
	Prices requests.Prices // optional: without it, list prices apply
}

// Administration manages a workspace as a whole: its data, audit log and billing.
type Administration struct {
	Workspaces   tenants.Workspaces
	Data         tenants.Data
	Audit        tenants.AuditLog
	Deletion     tenants.Deletion
	ImportConfig settings.ImportConfig
	Billing      *billing.Service
}

// Installation is for operators only.
type Installation struct {
	Operator tenants.Operators
	Health   operator.Health

	// LatestHealth returns the latest result of Health without checking again.
	LatestHealth operator.Health

	Mails func(context.Context) ([]tenants.WaitingMail, error) // the mails kept, newest first; nil if mails are sent
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
			identity: deps.People.Identity, billing: deps.Administration.Billing, data: deps.Administration.Data, cookies: tenants.NewCookies(config.PublicURL), log: config.Log,
			visitor: deps.People.Visitor,
		},
		config: config, deps: deps, origins: http.NewCrossOriginProtection(),
	}
}
