package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Actor is who does something in a workspace. The zero Actor is the product.
type Actor struct {
	User   uuid.UUID // Nil for an API key and for the product
	APIKey uuid.UUID // Nil for a person and for the product
	Name   string    // as it was then: the person's e-mail address, the key's name
	From   string    // address of the client; empty: the product or its command line

	// Until is when the secret that an API key was presented with ends; nil if never.
	Until *time.Time
}

// Fields are the values of a thing by their names, as people read them. They hold
// no secret and nothing of what was said in sessions.
type Fields map[string]string

// Change is what an audit entry says was done.
type Change struct {
	Action Action
	Target string // what was changed: an id, an address, a name
	Before Fields // nil where there was nothing
	After  Fields // nil where nothing is left
}

// AuditEntry is one change, who made it and when. It is written in the transaction
// that makes the change, and never changed or removed while the workspace exists.
type AuditEntry struct {
	Change

	ID    uuid.UUID // version 7: ordered by time
	At    time.Time
	Actor Actor
}

// Action names a kind of change: what, then what was done with it.
type Action string

// The actions of the audit log.
const (
	KeyCreated           Action = "key.created"
	KeyRevoked           Action = "key.revoked"
	ProviderKeyAdded     Action = "provider_key.added"
	ProviderKeyRemoved   Action = "provider_key.removed"
	ProviderKeyChanged   Action = "provider_key.changed"
	ProviderKeyReplaced  Action = "provider_key.replaced"
	PipelineSaved        Action = "pipeline.saved"
	PipelineRestored     Action = "pipeline.restored"
	ConfigImported       Action = "config.imported"
	ModelWindowSet       Action = "model_window.set"
	BudgetsSet           Action = "budgets.set"
	ModelPricesSet       Action = "model_prices.set"
	ModelLimitsSet       Action = "model_limits.set"
	ModelWindowRemoved   Action = "model_window.removed"
	RetentionSet         Action = "retention.set"
	SessionDeleted       Action = "session.deleted"
	EndUserErased        Action = "end_user.erased"
	LoginOpened          Action = "login.opened"
	LoginEnded           Action = "login.ended"
	WorkspaceCreated     Action = "workspace.created"
	PasswordChanged      Action = "password.changed"
	EmailChanged         Action = "email.changed"
	EmailVerified        Action = "email.verified"
	WorkspaceRenamed     Action = "workspace.renamed"
	InvitationCreated    Action = "invitation.created"
	InvitationResent     Action = "invitation.resent"
	InvitationRevoked    Action = "invitation.revoked"
	MemberJoined         Action = "member.joined"
	MemberRoleChanged    Action = "member.role_changed"
	MemberRemoved        Action = "member.removed"
	MemberLeft           Action = "member.left"
	KeyChanged           Action = "key.changed"
	KeyRotated           Action = "key.rotated"
	SettingsSaved        Action = "settings.saved"
	PatternAdded         Action = "pattern.added"
	PatternChanged       Action = "pattern.changed"
	PatternDeleted       Action = "pattern.deleted"
	PinAdded             Action = "pin.added"
	PinRemoved           Action = "pin.removed"
	CompactAsked         Action = "compact.asked"
	RequestSentAgain     Action = "request.sent_again"
	SessionExported      Action = "session.exported"
	WorkspaceExported    Action = "workspace.exported"
	AuditDownloaded      Action = "audit.downloaded"
	PlanChanged          Action = "plan.changed"
	CheckoutOpened       Action = "checkout.opened"
	PortalOpened         Action = "portal.opened"
	SecondFactorOn       Action = "second_factor.on"
	SecondFactorOff      Action = "second_factor.off"
	RecoveryCodeUsed     Action = "recovery_code.used"
	RecoveryCodesChanged Action = "recovery_codes.changed"
	PasskeyAdded         Action = "passkey.added"
	PasskeyRenamed       Action = "passkey.renamed"
	PasskeyRemoved       Action = "passkey.removed"
	PasskeyCopied        Action = "passkey.copied"
	SignOnSaved          Action = "sign_on.saved"
	SignOnRemoved        Action = "sign_on.removed"
	DomainClaimed        Action = "domain.claimed"
	DomainProven         Action = "domain.proven"
	DomainRemoved        Action = "domain.removed"
	AlertChannelAdded    Action = "alert_channel.added"
	AlertChannelChanged  Action = "alert_channel.changed"
	AlertChannelRemoved  Action = "alert_channel.removed"
	AlertsSaved          Action = "alerts.saved"
	CommentAdded         Action = "comment.added"
	CommentDeleted       Action = "comment.deleted"
)

// AuditFilter narrows the audit log. Its zero value asks for the newest entries.
type AuditFilter struct {
	Actor  string    // part of the actor's name; or their id
	Action string    // exactly; or what comes before its dot
	Except string    // leaves out actions with this before their dot; "" leaves out none
	From   time.Time // at or after
	To     time.Time // before
	Before uuid.UUID // only entries before this one: the last of the page before
	Limit  int       // entries on a page; 0: 50, at most 1000
}

type actorKey struct{}

// WithActor says on whose behalf everything is done with the context.
func WithActor(ctx context.Context, actor Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns on whose behalf something is done; the product where nobody was
// named.
func ActorOf(ctx context.Context) Actor {
	actor, _ := ctx.Value(actorKey{}).(Actor)
	return actor
}

// AuditLog keeps who changed what.
type AuditLog interface {
	// Audit returns the entries that pass a filter, the newest first.
	Audit(ctx context.Context, workspace WorkspaceID, filter AuditFilter) ([]AuditEntry, error)

	// Note notes a change on behalf of the context's actor.
	Note(ctx context.Context, tenant Tenant, change Change) error

	Transactor
}

// Transactor opens transactions.
type Transactor interface {
	// Together makes everything that is done for the Tenant which fn is given one transaction: all of it
	// is durable when it returns nil, and nothing of it was done when it returns an error. It takes
	// part in another if it is given that one's Tenant.
	Together(ctx context.Context, tenant Tenant, fn func(tenant Tenant) error) error
}
