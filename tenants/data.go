package tenants

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Reads says of which sessions someone may read the text.
type Reads string

// The values of Reads.
const (
	ReadsAll  Reads = "all"  // of every session of the workspace
	ReadsOwn  Reads = "own"  // of the sessions of API keys that they have created
	ReadsNone Reads = "none" // no sessions
)

// TextPolicy says which session text each role of a workspace may read. The role billing may not read any.
type TextPolicy struct {
	Managers Reads `gorm:"column:managers_read"` // owners and admins: all or own
	Members  Reads `gorm:"column:members_read"`  // all or own
	Viewers  Reads `gorm:"column:viewers_read"`  // all or none
}

// And returns the more restrictive of two rights.
func (r Reads) And(other Reads) Reads {
	for _, least := range []Reads{ReadsOwn, ReadsAll} {
		if r == least && other != ReadsNone && other != "" || other == least && r != ReadsNone && r != "" {
			return least
		}
	}
	return ReadsNone
}

// For returns the reading right of a role.
func (p TextPolicy) For(role Role) Reads {
	switch role {
	case Owner, Admin:
		return p.Managers
	case Regular:
		return p.Members
	case Viewer:
		return p.Viewers
	case Billing, Visitor:
	}
	return ReadsNone
}

// DataSettings are a workspace's data settings, except its Retention.
type DataSettings struct {
	TimeZone string     // of the workspace's days, as in the IANA time zone database
	Text     TextPolicy `gorm:"embedded"`
	NoStore  bool       // stores figures only of its exchanges, and therefore compresses none
	Redact   Redaction  `gorm:"embedded"`
	EndUsers EndUserIDs `gorm:"column:end_user_ids"`                     // hashed if empty
	Origins  Origins    `gorm:"column:browser_origins;serializer:lines"` // of pages that may read answers in a browser; an API key may have its own
	Failover Failover   // when a provider key fails

	OwnCredentials bool // requests may bring their own provider credential, with our key in X-Palimpsest-Key
}

// Failover selects whether a request goes to another provider key when its own fails.
type Failover string

// The values of Failover. Some provider output, such as encrypted reasoning, is readable for the same account
// only. Therefore a prompt that contains it goes to another key in FailoverAccount only.
const (
	FailoverOff      Failover = ""         // never
	FailoverAccounts Failover = "accounts" // yes, and keys may be of different accounts
	FailoverAccount  Failover = "account"  // yes, and all keys with one base URL are of one account
)

// EndUserIDs selects the ids by which a workspace shows its end users.
type EndUserIDs string

// The values of EndUserIDs.
const (
	EndUsersHashed EndUserIDs = "hashed" // by a hash of the application's own id
	EndUsersPlain  EndUserIDs = "plain"  // by the plain id as well, which is stored sealed
)

// Normal returns the settings in their stored form.
func (s DataSettings) Normal() DataSettings {
	s.Redact, s.EndUsers, s.Origins = s.Redact.normal(), cmp.Or(s.EndUsers, EndUsersHashed), s.Origins.Normal()
	return s
}

// Validate returns Invalid for invalid settings.
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

// Fields returns the settings' fields for the audit log.
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

// Reader is someone who wants to read a workspace's session text. The zero Reader has no access.
type Reader struct {
	All  bool        // every session
	Own  bool        // the sessions of Keys
	Keys []uuid.UUID // the API keys that they have created
	Held []uuid.UUID // those, and the API keys that they are responsible for, which Visible needs

	// EndUser narrows searches and lookups to the sessions of an end user, as session.EndUserID names them;
	// "" means all. MayRead ignores it because it does not know a session's end user.
	EndUser string
}

// MayRead reports whether the reader may read the text of an API key's session.
func (r Reader) MayRead(apiKey uuid.UUID) bool {
	return r.All || r.Own && slices.Contains(r.Keys, apiKey)
}

// And returns a reader with the rights that both have.
func (r Reader) And(other Reader) Reader {
	both := func(mine, theirs []uuid.UUID) []uuid.UUID {
		return slices.DeleteFunc(slices.Clone(mine), func(key uuid.UUID) bool { return !slices.Contains(theirs, key) })
	}
	switch {
	case r.All:
		return other
	case other.All:
		return r
	case !r.Own || !other.Own:
		return Reader{Held: both(r.Held, other.Held)}
	}
	return Reader{Own: true, Keys: both(r.Keys, other.Keys), Held: both(r.Held, other.Held)}
}

// None reports whether the reader has no access.
func (r Reader) None() bool { return !r.All && !r.Own }

// Data stores the workspaces' data settings, readers and budgets.
type Data interface {
	DataSettings(ctx context.Context, workspace WorkspaceID) (DataSettings, error)

	// SetDataSettings returns an Invalid for invalid settings.
	SetDataSettings(ctx context.Context, tenant Tenant, settings DataSettings) error

	// RedactionCounts returns the number of replacements per kind of personal data, in the order of
	// RedactionKinds, without kinds that were never found.
	RedactionCounts(ctx context.Context, workspace WorkspaceID) ([]RedactionCount, error)

	// Reader returns a person's reading rights for session text, which are empty for non-members.
	Reader(ctx context.Context, workspace WorkspaceID, user uuid.UUID) (Reader, error)

	// KeyReader returns the reading rights of a presented API key: the rights that the person behind it and
	// its creator both have now. The key of a former member has no access, even if it was kept and someone
	// else is responsible for it.
	KeyReader(ctx context.Context, key APIKey) (Reader, error)

	// Retention returns how long the workspace keeps its sessions.
	Retention(ctx context.Context, workspace WorkspaceID) (Retention, error)

	// SetRetention returns an Invalid for an invalid retention.
	SetRetention(ctx context.Context, tenant Tenant, retention Retention) error

	// Budgets returns the workspace's own budget first, then those of members and projects by id. API keys
	// have their budgets in their limits.
	Budgets(ctx context.Context, workspace WorkspaceID) ([]Budget, error)

	// SetBudgets replaces the current budgets. It returns an Invalid for invalid budgets.
	SetBudgets(ctx context.Context, tenant Tenant, budgets []Budget) error

	// ChangeBudgets replaces the budgets with the result of change, as SetBudgets does.
	ChangeBudgets(ctx context.Context, tenant Tenant, change func([]Budget) ([]Budget, error)) error

	// ModelPrices returns the workspace's own model prices, which replace list prices, in the order of their
	// names.
	ModelPrices(ctx context.Context, workspace WorkspaceID) ([]ModelPrice, error)

	// ChangeModelPrices replaces the prices with the result of change. It returns an Invalid for invalid
	// prices, or the error of change.
	ChangeModelPrices(ctx context.Context, tenant Tenant, change func([]ModelPrice) ([]ModelPrice, error)) error

	// ModelLimits returns the workspace's limits for prompts and answers of models, which replace the
	// catalog's, in the order of their names.
	ModelLimits(ctx context.Context, workspace WorkspaceID) ([]ModelLimit, error)

	// ChangeModelLimits is ChangeModelPrices for limits.
	ChangeModelLimits(ctx context.Context, tenant Tenant, change func([]ModelLimit) ([]ModelLimit, error)) error

	// Spend returns a spender's cost at list prices, in millionths of a dollar, since the beginnings of a day
	// and a month.
	Spend(ctx context.Context, workspace WorkspaceID, who Spender, day, month time.Time) (inDay, inMonth int64, err error)
}

// MaxRetentionDays bounds a retention, in days: a hundred years.
const MaxRetentionDays = 36_500

// Retention is how long a workspace keeps its sessions.
type Retention struct {
	Days int // after which an unused session is deleted with all its data; 0: never
}

// Validate returns Invalid for an invalid number of days.
func (r Retention) Validate() error {
	if r.Days < 0 || r.Days > MaxRetentionDays {
		return Invalid{Field: "days", Message: "must be a whole number from 0 (keep for ever) to 36500"}
	}
	return nil
}

// Fields returns the retention's fields for the audit log.
func (r Retention) Fields() Fields { return Fields{"days": strconv.Itoa(r.Days)} }

// RedactionKind is a kind of personal data.
type RedactionKind string

// The kinds of personal data.
const (
	RedactNames  RedactionKind = "name"  // known names of people
	RedactEmails RedactionKind = "email" // mail addresses
	RedactCards  RedactionKind = "card"  // numbers of payment cards
	RedactPhones RedactionKind = "phone" // phone numbers
	RedactKeys   RedactionKind = "key"   // API keys, passwords and other secrets
)

// RedactionKinds returns every kind, in display order.
func RedactionKinds() []RedactionKind {
	return []RedactionKind{RedactNames, RedactEmails, RedactCards, RedactPhones, RedactKeys}
}

// The limits of a workspace's list of names.
const (
	maxRedactedNames = 500
	maxRedactedName  = 100 // characters
)

// Redaction lists the personal data that a workspace has replaced in session text before storage. It is off
// without Kinds.
type Redaction struct {
	Kinds []RedactionKind `gorm:"column:redact;serializer:list"`
	Names []string        `gorm:"column:redact_names;serializer:lines"` // of people, for RedactNames
}

// normal returns the settings with each kind once, in the order of RedactionKinds, and without blanks around
// names.
func (r Redaction) normal() Redaction {
	var kinds []RedactionKind
	for _, kind := range RedactionKinds() {
		if slices.Contains(r.Kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	var names []string
	for _, name := range r.Names {
		if name = strings.Join(strings.Fields(name), " "); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return Redaction{Kinds: kinds, Names: names}
}

func (r Redaction) validate() error {
	for _, kind := range r.Kinds {
		if !slices.Contains(RedactionKinds(), kind) {
			return Invalid{Field: "redact", Message: "has the unknown kind " + string(kind) + ": the kinds are name, email, card, phone and key"}
		}
	}
	if len(r.Names) > maxRedactedNames {
		return Invalid{Field: "redact_names", Message: "may have at most 500 names"}
	}
	for _, name := range r.Names {
		if length := utf8.RuneCountInString(name); length < 2 || length > maxRedactedName || !strings.ContainsFunc(name, unicode.IsLetter) || strings.ContainsFunc(name, unicode.IsControl) {
			return Invalid{Field: "redact_names", Message: "must be names of 2 to 100 characters, with letters and without line breaks"}
		}
	}
	return nil
}

// RedactionCount is the number of replacements of a kind of personal data in a workspace.
type RedactionCount struct {
	Kind  RedactionKind
	Found int64
}
