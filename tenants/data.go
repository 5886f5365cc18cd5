package tenants

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Reads says of whose sessions someone may read what was said.
type Reads string

// The values of Reads.
const (
	ReadsAll  Reads = "all"  // of every session of the workspace
	ReadsOwn  Reads = "own"  // of the sessions of API keys that they have created
	ReadsNone Reads = "none" // of none
)

// TextPolicy says what each role of a workspace may read of what was said. The role
// billing may read nothing.
type TextPolicy struct {
	Managers Reads // owners and admins: all or own
	Members  Reads // all or own
	Viewers  Reads // all or none
}

// And returns what both allow: the less of the two.
func (r Reads) And(other Reads) Reads {
	for _, least := range []Reads{ReadsOwn, ReadsAll} {
		if r == least && other != ReadsNone && other != "" || other == least && r != ReadsNone && r != "" {
			return least
		}
	}
	return ReadsNone
}

// For returns what a role may read.
func (p TextPolicy) For(role Role) Reads {
	switch role {
	case Owner, Admin:
		return p.Managers
	case Regular:
		return p.Members
	case Viewer:
		return p.Viewers
	case Billing:
	}
	return ReadsNone
}

// DataSettings are what a workspace says of its data, beside its Retention.
type DataSettings struct {
	TimeZone string // of the workspace's days, as in the IANA time zone database
	Text     TextPolicy
	NoStore  bool // nothing of its exchanges is kept but figures, and so nothing is compressed
	Redact   Redaction
	EndUsers EndUserIDs // hashed if empty
	Origins  Origins    // of pages that may read answers in a browser; an API key may have its own
	Failover Failover   // when a provider key fails

	OwnCredentials bool // requests may bring the provider's credential of their own, with our key in X-Palimpsest-Key
}

// Failover says whether a request goes to another provider key when its own fails.
type Failover string

// The values of Failover. Some of what a provider writes only its account can read, such as encrypted
// reasoning: a prompt that holds any goes to another key in FailoverAccount only.
const (
	FailoverOff      Failover = ""         // never
	FailoverAccounts Failover = "accounts" // yes, and keys may be of different accounts
	FailoverAccount  Failover = "account"  // yes, and all keys with one base URL are of one account
)

// EndUserIDs says by which ids a workspace shows its end users.
type EndUserIDs string

// The values of EndUserIDs.
const (
	EndUsersHashed EndUserIDs = "hashed" // by a hash of the application's own id
	EndUsersPlain  EndUserIDs = "plain"  // by that id as well, which is kept sealed
)

// Normal returns the same settings as they are stored.
func (s DataSettings) Normal() DataSettings {
	s.Redact, s.EndUsers, s.Origins = s.Redact.normal(), cmp.Or(s.EndUsers, EndUsersHashed), s.Origins.Normal()
	return s
}

// Validate returns Invalid for what cannot be set.
func (s DataSettings) Validate() error {
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "" || s.TimeZone == "Local" {
		return Invalid{Field: "time_zone", Message: "is not a time zone such as Europe/Berlin or UTC"}
	}
	for _, choice := range []struct {
		field   string
		value   Reads
		allowed []Reads
		message string
	}{
		{"managers_read", s.Text.Managers, []Reads{ReadsAll, ReadsOwn}, "must be all or own"},
		{"members_read", s.Text.Members, []Reads{ReadsAll, ReadsOwn}, "must be all or own"},
		{"viewers_read", s.Text.Viewers, []Reads{ReadsAll, ReadsNone}, "must be all or none"},
	} {
		if !slices.Contains(choice.allowed, choice.value) {
			return Invalid{Field: choice.field, Message: choice.message}
		}
	}
	if !slices.Contains([]EndUserIDs{"", EndUsersHashed, EndUsersPlain}, s.EndUsers) {
		return Invalid{Field: "end_users", Message: "must be hashed or plain"}
	}
	if !slices.Contains([]Failover{FailoverOff, FailoverAccounts, FailoverAccount}, s.Failover) {
		return Invalid{Field: "failover", Message: "must be empty (off), accounts or account"}
	}
	if err := s.Normal().Origins.validate(); err != nil {
		return err
	}
	return s.Redact.validate()
}

// Fields returns what the audit log shows of the settings.
func (s DataSettings) Fields() Fields {
	kinds := make([]string, len(s.Redact.Kinds))
	for i, kind := range s.Redact.Kinds {
		kinds[i] = string(kind)
	}
	return Fields{
		"redact": strings.Join(kinds, ", "), "redact_names": strings.Join(s.Redact.Names, ", "),
		"time_zone": s.TimeZone, "managers_read": string(s.Text.Managers), "members_read": string(s.Text.Members),
		"viewers_read": string(s.Text.Viewers), "no_store": strconv.FormatBool(s.NoStore), "end_users": string(s.EndUsers),
		"browser_origins": strings.Join(s.Origins, ", "), "failover": string(s.Failover), "own_credentials": strconv.FormatBool(s.OwnCredentials),
	}
}

// Reader is someone who wants to read what was said in a workspace. The zero Reader
// may read nothing.
type Reader struct {
	All  bool        // every session
	Own  bool        // the sessions of Keys
	Keys []uuid.UUID // the API keys that they have created

	// EndUser narrows what is searched and looked up to the sessions of an end user, as session.EndUserID
	// names them; "" if it doesn't. MayRead does not know whose a session is.
	EndUser string
}

// MayRead reports whether the reader may read what was said in a session of an API
// key.
func (r Reader) MayRead(apiKey uuid.UUID) bool {
	return r.All || r.Own && slices.Contains(r.Keys, apiKey)
}

// And returns a reader who may read what both may.
func (r Reader) And(other Reader) Reader {
	switch {
	case r.All:
		return other
	case other.All:
		return r
	case !r.Own || !other.Own:
		return Reader{}
	}
	isOther := func(key uuid.UUID) bool { return !slices.Contains(other.Keys, key) }
	return Reader{Own: true, Keys: slices.DeleteFunc(slices.Clone(r.Keys), isOther)}
}

// None reports whether the reader may read nothing at all.
func (r Reader) None() bool { return !r.All && !r.Own }

// Data keeps what workspaces say of their data, who may read it, and what they may spend.
type Data interface {
	DataSettings(ctx context.Context, workspace WorkspaceID) (DataSettings, error)

	// SetDataSettings returns an Invalid for what cannot be set.
	SetDataSettings(ctx context.Context, tenant Tenant, settings DataSettings) error

	// RedactionCounts returns how often each kind of personal data was replaced, in the order of
	// RedactionKinds; none for a kind that was never found.
	RedactionCounts(ctx context.Context, workspace WorkspaceID) ([]RedactionCount, error)

	// Reader returns what a person may read of what was said; nothing for someone who
	// is not a member.
	Reader(ctx context.Context, workspace WorkspaceID, user uuid.UUID) (Reader, error)

	// KeyReader returns what an API key that was presented may read: what the person behind
	// it and the one who created it may both read now. The key of a former member reads
	// nothing, also where it was kept and someone else answers for it.
	KeyReader(ctx context.Context, key APIKey) (Reader, error)

	// Retention returns for how long the workspace keeps its sessions.
	Retention(ctx context.Context, workspace WorkspaceID) (Retention, error)

	// SetRetention returns an Invalid for what cannot be set.
	SetRetention(ctx context.Context, tenant Tenant, retention Retention) error

	// Budgets returns the workspace's own budget first, then those of members and projects by
	// id. Those of API keys are theirs.
	Budgets(ctx context.Context, workspace WorkspaceID) ([]Budget, error)

	// SetBudgets puts budgets in place of those that stand. It returns an Invalid for what
	// cannot be set.
	SetBudgets(ctx context.Context, tenant Tenant, budgets []Budget) error

	// ChangeBudgets puts what change makes of the budgets in their place, as SetBudgets does.
	ChangeBudgets(ctx context.Context, tenant Tenant, change func([]Budget) ([]Budget, error)) error

	// ModelPrices returns what the workspace pays for models in place of their list prices, in
	// the order of their names.
	ModelPrices(ctx context.Context, workspace WorkspaceID) ([]ModelPrice, error)

	// ChangeModelPrices puts what change makes of the prices in place of those that stand. It
	// returns an Invalid for what cannot be set, or the error of change.
	ChangeModelPrices(ctx context.Context, tenant Tenant, change func([]ModelPrice) ([]ModelPrice, error)) error

	// ModelLimits returns how long prompts and answers of models may be in place of what the catalog says, in the order
	// of their names.
	ModelLimits(ctx context.Context, workspace WorkspaceID) ([]ModelLimit, error)

	// ChangeModelLimits is ChangeModelPrices for limits.
	ChangeModelLimits(ctx context.Context, tenant Tenant, change func([]ModelLimit) ([]ModelLimit, error)) error

	// Spend returns what a spender has cost at list prices, in millionths of a dollar, since
	// a day and since a month began.
	Spend(ctx context.Context, workspace WorkspaceID, who Spender, day, month time.Time) (inDay, inMonth int64, err error)
}
