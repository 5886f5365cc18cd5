package tenants

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Actor is the originator of an action in a workspace. The zero Actor is the product.
type Actor struct {
	User   uuid.UUID `gorm:"column:user_id;serializer:null"`    // Nil for an API key and for the product
	APIKey uuid.UUID `gorm:"column:api_key_id;serializer:null"` // Nil for a person and for the product
	Name   string    `gorm:"column:actor"`                      // at that time: the person's e-mail address, the key's name
	From   string    `gorm:"column:address"`                    // address of the client; "" for the product or its command line

	// Until is the expiry of the secret that an API key was presented with; optional.
	Until *time.Time `gorm:"-"`
}

// Fields are readable values by field name. They contain no secrets and no session text.
type Fields map[string]string

// Change is the change that an audit entry records.
type Change struct {
	Action Action
	Target string // the changed object: an id, an address, a name
	Before Fields `gorm:"serializer:json"` // nil for a creation
	After  Fields `gorm:"serializer:json"` // nil for a deletion
}

// AuditEntry is one change with its actor and time. It is written in the transaction of the change, and never
// changed or removed while the workspace exists.
type AuditEntry struct {
	Change

	ID    uuid.UUID // version 7: ordered by time
	At    time.Time
	Actor Actor `gorm:"embedded"`
}

// Action names a kind of change: the object, then the verb.
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
	SessionPinned        Action = "pin.session_added"
	SessionUnpinned      Action = "pin.session_removed"
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
	SessionScored        Action = "session.scored"
	SessionLabeled       Action = "session.labeled"
)

// AuditFilter narrows the audit log. Its zero value selects the newest entries.
type AuditFilter struct {
	Actor  string    // part of the actor's name; or their id
	Action string    // exact, or the part before its dot
	Except string    // leaves out actions with this before their dot; optional
	From   time.Time // at or after
	To     time.Time // before
	Before uuid.UUID // only entries before this one: the last of the previous page
	Limit  int       // entries on a page; 0: 50, at most 1000
}

type actorKey struct{}

// WithActor returns a context for work on behalf of an actor.
func WithActor(ctx context.Context, actor Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns the actor on whose behalf something is done, or the product if the context has no actor.
func ActorOf(ctx context.Context) Actor {
	actor, _ := ctx.Value(actorKey{}).(Actor)
	return actor
}

// AuditLog stores who changed a workspace, and how.
type AuditLog interface {
	// Audit returns the entries that match a filter, the newest first.
	Audit(ctx context.Context, workspace WorkspaceID, filter AuditFilter) ([]AuditEntry, error)

	// Note records a change on behalf of the context's actor.
	Note(ctx context.Context, tenant Tenant, change Change) error

	Transactor
}

// Transactor opens transactions.
type Transactor interface {
	// Together runs all work for fn's Tenant in one transaction: it commits if fn returns nil and rolls back
	// if fn returns an error. It joins the transaction of a Tenant that already has one.
	Together(ctx context.Context, tenant Tenant, fn func(tenant Tenant) error) error
}

// AuditPage bounds the entries in memory while a list is written.
const AuditPage = 500

// AuditPages returns the entries after before, the newest first, at most AuditPage; uuid.Nil starts at the
// newest.
type AuditPages func(ctx context.Context, before uuid.UUID) ([]AuditEntry, error)

// Each calls do with every entry.
func (p AuditPages) Each(ctx context.Context, do func(entry *AuditEntry) error) error {
	before := uuid.Nil
	for {
		entries, err := p(ctx, before)
		if err != nil {
			return err
		}
		for i := range entries {
			if err := do(&entries[i]); err != nil {
				return err
			}
		}
		if len(entries) < AuditPage {
			return nil
		}
		before = entries[len(entries)-1].ID
	}
}

// WriteAuditCSV writes a list as CSV (RFC 4180) with a heading. A cell that a spreadsheet would evaluate as a
// formula begins with an apostrophe.
func WriteAuditCSV(ctx context.Context, w io.Writer, pages AuditPages) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write([]string{"at", "actor", "user", "api_key", "address", "action", "target", "before", "after"}); err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	err := pages.Each(ctx, func(entry *AuditEntry) error {
		before, after, err := cells(entry.Before, entry.After)
		if err != nil {
			return err
		}
		return out.Write([]string{
			entry.At.UTC().Format(time.RFC3339Nano), CSVCell(entry.Actor.Name), CSVID(entry.Actor.User), CSVID(entry.Actor.APIKey),
			CSVCell(entry.Actor.From), string(entry.Action), CSVCell(entry.Target), before, after,
		})
	})
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	if err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	return nil
}

// cells returns fields as JSON; "" if absent.
func cells(before, after Fields) (string, string, error) {
	texts := [2]string{}
	for i, fields := range []Fields{before, after} {
		if fields == nil {
			continue
		}
		text, err := json.Marshal(fields)
		if err != nil {
			return "", "", err
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1], nil
}

// CSVCell escapes text so that spreadsheets do not evaluate it (OWASP, CSV injection), including wide forms
// of signs in some locales.
func CSVCell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + text
	}
	return text
}

// CSVTime returns a time as a cell of CSV, in UTC; "" for the zero time.
func CSVTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// CSVID returns an id as a cell of CSV; "" for uuid.Nil.
func CSVID(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
