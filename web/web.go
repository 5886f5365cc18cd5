package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/web/account"
	"palimpsest/web/alerts"
	"palimpsest/web/audit"
	"palimpsest/web/billing"
	"palimpsest/web/columns"
	"palimpsest/web/devmail"
	"palimpsest/web/factor"
	"palimpsest/web/identity"
	"palimpsest/web/invite"
	"palimpsest/web/keys"
	"palimpsest/web/live"
	"palimpsest/web/members"
	"palimpsest/web/operator"
	"palimpsest/web/overview"
	"palimpsest/web/passkey"
	"palimpsest/web/patterns"
	"palimpsest/web/pipelines"
	"palimpsest/web/providers"
	"palimpsest/web/requests"
	"palimpsest/web/session"
	"palimpsest/web/sessions"
	"palimpsest/web/settings"
	"palimpsest/web/signon"
	"palimpsest/web/tuning"
	"palimpsest/web/views"
	"palimpsest/web/workspaces"
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

	Log *slog.Logger     // nil: nowhere
	Now func() time.Time // nil: time.Now
}

// Identity signs people up, logs them in and out, and knows them by their token.
type Identity interface {
	identity.Service
	account.Service
	factor.Service

	// Authenticate returns who a token belongs to, or tenants.ErrLoginEnded.
	Authenticate(ctx context.Context, token string) (tenants.Principal, error)

	// Confirm returns tenants.ErrWrongLogin if the password is not the user's, or
	// tenants.ErrTooMany.
	Confirm(ctx context.Context, user tenants.User, password, from string) error

	// IsNew reports whether nobody has signed up in this installation yet.
	IsNew(ctx context.Context) (bool, error)
}

// Passkeys makes passkeys and logs people in with them.
type Passkeys interface {
	identity.Passkeys
	passkey.Service
}

// Deps are the stores that the pages read and change. All but Mails, ArchiveKeys,
// Sender, Models, Searcher and Live must be set.
type Deps struct {
	Identity      Identity
	APIKeys       keys.Store
	ProviderKeys  providers.Store
	Pipelines     Pipelines
	Preview       tuning.Comparer
	TriggerAdvice overview.TriggerAdvice
	ModelWindows  tuning.Windows
	Usage         overview.Usage
	Sessions      Sessions
	Exchanges     Exchanges
	Archive       session.Archive
	ArchiveKeys   *archive.Keys // nil: what is sealed beside messages is not shown
	Billing       billing.Service
	People        People
	Invitations   Invitations
	Data          settings.Data
	Audit         Audit
	Deletion      settings.Deletion
	Config        settings.Configuration
	SignOn        signon.Service
	Alerts        alerts.Service
	Stars         tenants.Stars
	Comments      tenants.Comments
	Passkeys      Passkeys

	Sender requests.Sender // optional: nothing is sent again
	Models *tokens.Models  // optional: what sending again costs is not said

	Patterns patterns.Store
	Searcher archive.Searcher // nil: what was said is not searched
	Views    Views
	Live     *live.Hub // nil: pages do not hear of anything

	Operator operator.Store
	Health   operator.Health

	// LatestHealth is what Health has found last, without looking again.
	LatestHealth operator.Health

	Mails devmail.Outbox // nil where mails are sent
}

// Audit reads what was changed, and notes changes that pages make.
type Audit interface {
	audit.Store
	patterns.Audit
	session.Audit
	sessions.Log
}

// People keeps workspaces and who belongs to them.
type People interface {
	members.People
	workspaces.People
}

// Invitations asks people into workspaces, and lets them in.
type Invitations interface {
	members.Invitations
	invite.Invitations
}

// Pipelines keeps pipelines, version by version.
type Pipelines interface {
	tuning.Store
	pipelines.Store
}

// Sessions lists and reads sessions.
type Sessions interface {
	sessions.Store
	session.Store
	overview.Sessions
	tuning.Sessions
}

// Views keeps how people look at lists.
type Views interface {
	views.Store
	columns.Store
}

// Exchanges lists what went through the proxy.
type Exchanges interface {
	requests.Exchanges
	overview.Exchanges
	sessions.Exchanges
	tuning.Exchanges
}

// Server answers the dashboard's requests.
type Server struct {
	config  Config
	deps    Deps
	cookies tenants.Cookies
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
		config: config, deps: deps,
		cookies: tenants.NewCookies(config.PublicURL), origins: http.NewCrossOriginProtection(),
	}
}
