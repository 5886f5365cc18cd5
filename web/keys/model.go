package keys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/clients"
	"palimpsest/web/components"
)

const (
	usageSpan = 7 * 24 * time.Hour // the span of the request counts
	soon      = 7 * 24 * time.Hour // before its end, a key is highlighted
)

// model is the page's data.
type model struct {
	Rows        []row
	Active      int
	MayCreate   bool
	UsageFailed string // reference in the log if requests could not be counted; "" otherwise
	Who         tenants.Principal
	Now         time.Time
	Clients     []clients.Client
	Revoked     string // name of the key just revoked; "" if none

	FirstSteps bool // no key has been used yet

	Saved string // name of the key just changed; "" if none

	Form    *formModel    // the form to create or change a key, or nil
	Rotate  *rotateModel  // the key to rotate, or nil
	Created *createdModel // the key just created, or nil
	Revoke  *revokeModel  // the key to revoke, or nil
}

// row is a key in the table.
type row struct {
	Key       tenants.APIKey
	Creator   string
	Held      string     // its limits in a few words; "" if absent
	OldUntil  *time.Time // when the secret before the last rotation ends; nil if it has ended
	Requests  int64
	Cost      *int64 // of the requests, in millionths of a dollar; nil if the reader may not see it
	MayRevoke bool   // revoke, change and rotate
	State     string // "active", "expires soon", "expired", "revoked"
	Tag       string // class of the state's tag
}

// createdModel is a newly created or rotated key.
type createdModel struct {
	Name, Secret string
	Old          string // the fate of the previous secret; "" if there was none

	Clients []clients.Client // set-ups with the secret filled in

	Awaited *useModel // optional; the page waits for its first request
}

// rotateModel is the question how to rotate a key.
type rotateModel struct {
	ID    uuid.UUID
	Name  string
	Grace components.FieldModel
}

// graces are the times for which an old secret can keep working.
func graces() []components.Option {
	return []components.Option{
		{Value: "24h", Label: "for 24 hours"}, {Value: "1h", Label: "for an hour"}, {Value: "168h", Label: "for 7 days"}, {Value: "0s", Label: "no longer"},
	}
}

// grace parses one of graces, or returns a tenants.Invalid.
func grace(text string) (time.Duration, error) {
	if !slices.ContainsFunc(graces(), func(option components.Option) bool { return option.Value == text }) {
		return 0, tenants.Invalid{Field: "grace", Message: "must be one of the choices"}
	}
	return time.ParseDuration(text)
}

// newRotate returns the question how to rotate a key, with the choice and its error.
func newRotate(key tenants.APIKey, chosen string, err error) *rotateModel {
	rotate := &rotateModel{ID: key.ID, Name: key.Name, Grace: components.FieldModel{Label: "The old secret works", Name: "grace", Value: chosen}}
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		rotate.Grace.Error = components.FieldError("The grace", invalid.Message)
	}
	return rotate
}

// revokeModel is the question whether to revoke a key.
type revokeModel struct {
	ID      uuid.UUID
	Name    string
	Confirm components.FieldModel
}

func newModel(who tenants.Principal, keys []tenants.APIKey, used []tenants.UsageRow, usageFailed, publicURL string, now time.Time) model {
	requests, costs := map[string]int64{}, map[string]int64{}
	for _, key := range used {
		requests[key.Label], costs[key.Label] = key.Exchanges, key.CostMicroUSD
	}
	m := model{Who: who, Now: now, MayCreate: who.Role.May(tenants.CreateKeys), UsageFailed: usageFailed, Clients: clients.All(publicURL), FirstSteps: true}
	for _, key := range keys {
		m.FirstSteps = m.FirstSteps && key.LastUsedAt == nil
		state, tag := stateOf(key, now)
		if key.RevokedAt == nil && state != stateExpired {
			m.Active++
		}
		var cost *int64
		if who.Role.May(tenants.ReadSpend) || key.CreatedBy == who.User.ID {
			cost = new(costs[key.ID.String()])
		}
		m.Rows = append(m.Rows, row{
			Key: key, Cost: cost, Requests: requests[key.ID.String()], State: state, Tag: tag,
			MayRevoke: key.RevokedAt == nil && who.MayChangeKey(key),
			Creator:   creatorOf(key, who), Held: summary(key), OldUntil: oldUntil(key, now),
		})
	}
	slices.SortStableFunc(m.Rows, func(a, b row) int { return cmp.Compare(a.rank(), b.rank()) })
	return m
}

// rank orders keys: usable first, then expired, then revoked.
func (r *row) rank() int {
	switch {
	case r.Key.RevokedAt != nil:
		return 2
	case r.State == stateExpired:
		return 1
	default:
		return 0
	}
}

// creatorOf names a key's creator.
func creatorOf(key tenants.APIKey, who tenants.Principal) string {
	switch {
	case key.CreatedBy == who.User.ID:
		return "you"
	case key.Creator == "":
		return "someone who left"
	default:
		return key.Creator
	}
}

// oldUntil formats when the secret before the last rotation ends.
func oldUntil(key tenants.APIKey, now time.Time) *time.Time {
	if key.OldUntil == nil || !key.OldUntil.After(now) || key.RevokedAt != nil {
		return nil
	}
	return key.OldUntil
}

// codeLabel is a snippet's label for screen readers.
func codeLabel(client clients.Client, snippet clients.Snippet) string {
	if len(client.Snippets) == 1 {
		return client.Title + " set-up"
	}
	return client.Title + " set-up, " + snippet.Label
}

const stateExpired = "expired"

// stateOf returns a key's state and the class of its tag.
func stateOf(key tenants.APIKey, now time.Time) (state, tag string) {
	switch {
	case key.RevokedAt != nil:
		return "revoked", ""
	case key.ExpiresAt != nil && !key.ExpiresAt.After(now):
		return stateExpired, "bad"
	case key.ExpiresAt != nil && key.ExpiresAt.Sub(now) < soon:
		return "expires soon", "warn"
	default:
		return "active", "ok"
	}
}

// revoked returns the name of a revoked key by its id.
func (m *model) revoked(id string) string {
	for i := range m.Rows {
		if key := &m.Rows[i].Key; key.ID.String() == id && key.RevokedAt != nil {
			return key.Name
		}
	}
	return ""
}

// named returns a key's name by its id.
func (m *model) named(id string) string {
	for i := range m.Rows {
		if key := &m.Rows[i].Key; key.ID.String() == id {
			return key.Name
		}
	}
	return ""
}

// expiries are the choices for a key's lifetime.
func expiries() []components.Option {
	return []components.Option{{Value: "", Label: "never"}, {Value: "30", Label: "in 30 days"}, {Value: "90", Label: "in 90 days"}, {Value: "365", Label: "in a year"}}
}

// newRevoke returns the question whether to revoke a key; wrong means that the typed name does not match.
func newRevoke(key tenants.APIKey, typed string, wrong bool) *revokeModel {
	revoke := &revokeModel{ID: key.ID, Name: key.Name, Confirm: components.FieldModel{
		Label: fmt.Sprintf("Type %s to confirm", key.Name), Name: "confirm", Value: typed,
	}}
	if wrong {
		revoke.Confirm.Error = fmt.Sprintf("That is not the name of the key. Type %s.", key.Name)
	}
	return revoke
}

// days parses a chosen lifetime in days, 0 for unlimited, or returns a tenants.Invalid.
func days(expiry string) (int, error) {
	if !slices.ContainsFunc(expiries(), func(option components.Option) bool { return option.Value == expiry }) {
		return 0, tenants.Invalid{Field: "expiry", Message: "must be one of the choices"}
	}
	if expiry == "" {
		return 0, nil
	}
	return strconv.Atoi(expiry)
}
