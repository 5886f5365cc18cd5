package tenants

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Workspace is the tenant: members, keys, pipeline, archive and bill belong to one.
type Workspace struct {
	ID        WorkspaceID
	Name      string
	CreatedAt time.Time

	// Suspension is the reason why the workspace is blocked; nil if it is active. It is set for the
	// workspaces of a Principal only.
	Suspension *Suspension `gorm:"-"`
}

// Role bounds a member's rights in a workspace.
type Role string

// The roles of members.
const (
	Owner   Role = "owner"
	Admin   Role = "admin"
	Regular Role = "member"
	Viewer  Role = "viewer"
	Billing Role = "billing"

	// Visitor is everyone's role in a public demo. No member has it.
	Visitor Role = "visitor"
)

// User is a person with a login.
type User struct {
	ID        uuid.UUID
	Email     string // lower case
	CreatedAt time.Time

	// VerifiedAt is when the person proved that they receive mails to the address; nil until then.
	VerifiedAt *time.Time

	// MustVerify says that the person signed up by mail, and can log in only after VerifiedAt is set. It is
	// set only where their password is checked.
	MustVerify bool

	// Operator says that the person runs the installation. It is set for a principal only.
	Operator bool
}

// Membership is a user's place in a workspace.
type Membership struct {
	Workspace Workspace `gorm:"embedded;embeddedPrefix:workspace_"`
	Role      Role
	SeenAt    time.Time // when the user last worked there, within minutes; zero if unknown
}

// LoginAge is how long a login lasts.
const LoginAge = 14 * 24 * time.Hour

// Member is a user in one workspace.
type Member struct {
	User     User `gorm:"embedded"`
	Role     Role
	JoinedAt time.Time
	SeenAt   time.Time // when they last did something here, within minutes; zero if never
}

// Login is one browser or script that a user is logged in with.
type Login struct {
	ID        uuid.UUID
	UserID    uuid.UUID
	Workspace WorkspaceID `gorm:"column:workspace_id;serializer:null"`      // the login's workspace; zero if absent
	SignOn    WorkspaceID `gorm:"column:sign_on_workspace;serializer:null"` // workspace whose single sign-on opened it and to which it is limited; zero for other logins
	UserAgent string      // as the browser named itself
	Place     string      // place of the log-in; written once and not read back
	CreatedAt time.Time
	SeenAt    time.Time `gorm:"column:last_seen_at"` // last use, within minutes
	ExpiresAt time.Time
}

// Principal is the person behind a request to the dashboard or the product API: a user, in the workspace of
// their login. Without a workspace they have no role, and may only create or join one.
type Principal struct {
	User        User
	Login       Login
	Workspace   Workspace // zero if absent
	Role        Role
	Memberships []Membership // all workspaces of the user, in the order of joining
}

// Bound limits the principal to their login's access: a login through a workspace's single sign-on opens that
// workspace only, and gives no operator rights.
func (p Principal) Bound() Principal {
	only := p.Login.SignOn
	if only.IsZero() {
		return p
	}
	p.User.Operator = false
	var memberships []Membership
	for _, membership := range p.Memberships {
		if membership.Workspace.ID == only {
			memberships = append(memberships, membership)
		}
	}
	p.Memberships = memberships
	if p.Workspace.ID != only {
		p.Workspace, p.Role = Workspace{}, ""
	}
	return p
}

// MayChangeKey reports whether the principal may change and revoke an API key: all keys, or their own ones.
func (p Principal) MayChangeKey(key APIKey) bool {
	return p.Role.May(ManageKeys) || p.Role.May(CreateKeys) && key.CreatedBy == p.User.ID
}

// Actor returns the principal as an actor of the audit log, with their address.
func (p Principal) Actor(from string) Actor {
	return Actor{User: p.User.ID, Name: p.User.Email, From: from}
}

// Workspaces creates and renames workspaces, and switches people between them.
type Workspaces interface {
	// WorkspaceName returns the name of a workspace.
	WorkspaceName(ctx context.Context, workspace WorkspaceID) (string, error)

	// CreateWorkspace switches the login to the new workspace. Bad input is an Invalid.
	CreateWorkspace(ctx context.Context, login Login, name string) (Workspace, error)

	// Enter returns ErrNotFound for a workspace without a membership of the login's user.
	Enter(ctx context.Context, login Login, workspace WorkspaceID) error

	// RenameWorkspace returns an Invalid for bad input.
	RenameWorkspace(ctx context.Context, workspace WorkspaceID, name string) error

	// Leave returns ErrLastOwner for the workspace's last owner.
	Leave(ctx context.Context, who Principal, revokeKeys bool) error
}

// Deletion deletes workspaces.
type Deletion interface {
	// DeleteConfirmed deletes the current workspace of someone at an address, after they have typed its name
	// and their password. It returns an Invalid for name or password, a TooMany, or ErrNotFound if the
	// workspace is deleted already.
	DeleteConfirmed(ctx context.Context, who Principal, name, password, from string) error
}

// WorkspaceID names a tenant. All access to a tenant's data needs it. It is a uuid and has its text form, but
// its own type, so that the id of something else cannot be passed for it.
type WorkspaceID uuid.UUID //nolint:recvcheck // what reads one changes it, as uuid.UUID does

// NewWorkspaceID returns an id for a new workspace.
func NewWorkspaceID() WorkspaceID { return WorkspaceID(uuid.Must(uuid.NewV7())) }

// ParseWorkspaceID parses the output of String.
func ParseWorkspaceID(text string) (WorkspaceID, error) {
	id, err := uuid.Parse(text)
	return WorkspaceID(id), err
}

// IsZero reports whether the id is zero.
func (id WorkspaceID) IsZero() bool { return id == WorkspaceID{} }

// String implements fmt.Stringer.
func (id WorkspaceID) String() string { return uuid.UUID(id).String() }

// MarshalText implements encoding.TextMarshaler.
func (id WorkspaceID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *WorkspaceID) UnmarshalText(text []byte) error { return (*uuid.UUID)(id).UnmarshalText(text) }

// MarshalBinary implements encoding.BinaryMarshaler.
func (id WorkspaceID) MarshalBinary() ([]byte, error) { return uuid.UUID(id).MarshalBinary() }

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (id *WorkspaceID) UnmarshalBinary(data []byte) error {
	return (*uuid.UUID)(id).UnmarshalBinary(data)
}

// Value implements driver.Valuer.
func (id WorkspaceID) Value() (driver.Value, error) { return uuid.UUID(id).Value() }

// Scan implements sql.Scanner.
func (id *WorkspaceID) Scan(from any) error { return (*uuid.UUID)(id).Scan(from) }

// Tenant selects the rows that a store reads and changes, and the transaction: a WorkspaceID runs each call
// in its own transaction, and the Tenant from Transactor.Together runs all calls in that one. A function that
// takes a WorkspaceID always uses its own transaction.
type Tenant interface{ Workspace() WorkspaceID }

// Workspace implements Tenant.
func (id WorkspaceID) Workspace() WorkspaceID { return id }

// ErrBillingOff says that the installation has no billing, so that plans cannot be bought.
var ErrBillingOff = errors.New("billing is off")

// Reason is why a workspace's requests skip the modules.
type Reason string

// The reasons of a restraint.
const (
	Unrestrained  Reason = ""
	PaymentFailed Reason = "payment" // and the grace period is over
	QuotaUsed     Reason = "quota"   // of a month, on the plan Free
)

// Restraint makes a workspace's requests pass without any module. It never refuses them.
type Restraint struct {
	Reason Reason    `gorm:"column:restraint"`
	Since  time.Time `gorm:"column:restrained_at"` // zero for Unrestrained
}

// MaxEmail is the longest address, in bytes (RFC 5321, section 4.5.3.1.3, less the brackets).
const MaxEmail = 254

// MaxWorkspaceName is the longest name of a workspace, in characters.
const MaxWorkspaceName = 80

// CheckName returns a typed name without surrounding space, or an Invalid for field if it is not one line of
// 1 to most characters. It checks every name that people choose, since names appear in mails, logs, tables
// and terminals.
func CheckName(field, name string, most int) (string, error) {
	name = strings.TrimSpace(name)
	switch length := utf8.RuneCountInString(name); {
	case length == 0:
		return "", Invalid{Field: field, Message: fmt.Sprintf("must have 1 to %d characters", most)}
	case length > most:
		return "", Invalid{Field: field, Message: fmt.Sprintf("must have 1 to %d characters; it has %d", most, length)}
	case !isOneLine(name):
		return "", Invalid{Field: field, Message: "must be one line of text, without control characters"}
	}
	return name, nil
}

// isOneLine reports whether a text has no line breaks, control characters or characters that change the text
// direction.
func isOneLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(sign rune) bool {
		return unicode.IsControl(sign) || unicode.In(sign, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
	})
}

// CheckEmail returns an address in lower case, or an Invalid for email if it cannot receive mail. It checks
// every address that is stored or sent to. The domain must be a name with a dot, not an IP address.
func CheckEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if email == "" {
		return "", Invalid{Field: "email", Message: "is missing"}
	}
	address, err := mail.ParseAddress(email)
	if err != nil || address.Address != email || len(email) > MaxEmail || strings.Count(email, "@") != 1 || !isOneLine(email) || !isMailDomain(DomainOf(email)) {
		return "", Invalid{Field: "email", Message: "is not an e-mail address such as ada@example.com"}
	}
	return email, nil
}

// isMailDomain reports whether a domain is a name with a dot instead of an IP address.
func isMailDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	last := labels[len(labels)-1]
	for _, label := range labels {
		if label == "" || strings.ContainsAny(label, "[]:\"\\ ") {
			return false
		}
	}
	return len(labels) > 1 && strings.ContainsFunc(last, unicode.IsLetter)
}

const (
	bitsIPv4 = 32
	bitsIPv6 = 64 // one customer has a whole /64 network
)

// Place is the origin of requests: an IPv4 address, or the /64 network of an IPv6 address. Limits by origin
// count by place.
type Place struct{ network netip.Prefix }

// PlaceOf returns the place of an address, and false if it is not an IP address.
func PlaceOf(address string) (Place, bool) {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return Place{}, false
	}
	parsed = parsed.Unmap().WithZone("")
	bits := bitsIPv4
	if parsed.Is6() {
		bits = bitsIPv6
	}
	network, err := parsed.Prefix(bits)
	return Place{network: network}, err == nil
}

// String returns the network of a place, such as 192.0.2.1/32 or 2001:db8::/64.
func (p Place) String() string { return p.network.String() }

// Place returns the place of an actor as text; "" for the product and its command line.
func (a Actor) Place() string { return PlaceText(a.From) }

// PlaceText returns the place of an address as text, and returns other text unchanged.
func PlaceText(address string) string {
	if place, is := PlaceOf(address); is {
		return place.String()
	}
	return address
}
