package keys

import (
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
	usageSpan = 7 * 24 * time.Hour // that requests are counted in
	soon      = 7 * 24 * time.Hour // before its end, a key is marked
)

// model is the page.
type model struct {
	Rows      []row
	Active    int
	MayCreate bool
	NoUsage   bool // requests could not be counted
	Who       tenants.Principal
	Now       time.Time
	Clients   []clients.Client
	Revoked   string // name of the key that was just revoked; empty: none

	FirstSteps bool // no key was used yet

	Form    *formModel    // the form to create a key; nil: closed
	Created *createdModel // the key that was just created; nil: none
	Revoke  *revokeModel  // the key to revoke; nil: none
}

// row is a key in the table.
type row struct {
	Key       tenants.APIKey
	Requests  int64
	MayRevoke bool
	State     string // "active", "expires soon", "expired", "revoked"
	Tag       string // class of the state's tag
}

// createdModel is a key that was just created.
type createdModel struct{ Name, Secret string }

// export is what puts the secret where the set-ups of clients read it.
func (m createdModel) export() string { return fmt.Sprintf("export PALIMPSEST_KEY=%q", m.Secret) }

// formModel is the form to create a key.
type formModel struct{ Name, Expiry components.FieldModel }

// revokeModel is the question whether to revoke a key.
type revokeModel struct {
	ID      uuid.UUID
	Name    string
	Confirm components.FieldModel
}

func newModel(who tenants.Principal, keys []tenants.APIKey, used []tenants.UsageRow, noUsage bool, publicURL string, now time.Time) model {
	requests := map[string]int64{}
	for _, key := range used {
		requests[key.Label] = key.Exchanges
	}
	m := model{Who: who, Now: now, MayCreate: who.Role.May(tenants.CreateKeys), NoUsage: noUsage, Clients: clients.All(publicURL), FirstSteps: true}
	for _, key := range keys {
		m.FirstSteps = m.FirstSteps && key.LastUsedAt == nil
		state, tag := stateOf(key, now)
		if key.RevokedAt == nil && state != stateExpired {
			m.Active++
		}
		m.Rows = append(m.Rows, row{
			Key: key, Requests: requests[key.ID.String()], State: state, Tag: tag,
			MayRevoke: key.RevokedAt == nil && who.MayChangeKey(key),
		})
	}
	return m
}

// codeLabel is what a screen reader says of a snippet.
func codeLabel(client clients.Client, snippet clients.Snippet) string {
	if len(client.Snippets) == 1 {
		return client.Title + " set-up"
	}
	return client.Title + " set-up, " + snippet.Label
}

const stateExpired = "expired"

// stateOf says whether a key works, and the class of the tag that says it.
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

// revoked returns the name of the key with an id, if it is revoked.
func revoked(keys []tenants.APIKey, id string) string {
	for _, key := range keys {
		if key.ID.String() == id && key.RevokedAt != nil {
			return key.Name
		}
	}
	return ""
}

// expiries are the lives that a key can be given.
func expiries() []components.Option {
	return []components.Option{{Value: "", Label: "never"}, {Value: "30", Label: "in 30 days"}, {Value: "90", Label: "in 90 days"}, {Value: "365", Label: "in a year"}}
}

// newForm returns the form with what was typed and what is wrong with it.
func newForm(name, expiry string, err error) *formModel {
	form := &formModel{
		Name:   components.FieldModel{Label: "Name", Name: "name", Value: name, Hint: "What will use it: laptop, ci-agents."},
		Expiry: components.FieldModel{Label: "Expires", Name: "expiry", Value: expiry},
	}
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		for _, field := range []*components.FieldModel{&form.Name, &form.Expiry} {
			if field.Name == invalid.Field {
				field.Error = components.FieldError(field.Label, invalid.Message)
			}
		}
	}
	return form
}

// newRevoke returns the question whether to revoke a key; wrong says that what
// was typed is not its name.
func newRevoke(key tenants.APIKey, typed string, wrong bool) *revokeModel {
	revoke := &revokeModel{ID: key.ID, Name: key.Name, Confirm: components.FieldModel{
		Label: fmt.Sprintf("Type %s to confirm", key.Name), Name: "confirm", Value: typed,
	}}
	if wrong {
		revoke.Confirm.Error = fmt.Sprintf("That is not the name of the key. Type %s.", key.Name)
	}
	return revoke
}

// days returns how long a key with a chosen life lives, 0 for ever, or a
// tenants.Invalid.
func days(expiry string) (int, error) {
	if !slices.ContainsFunc(expiries(), func(option components.Option) bool { return option.Value == expiry }) {
		return 0, tenants.Invalid{Field: "expiry", Message: "must be one of the choices"}
	}
	if expiry == "" {
		return 0, nil
	}
	return strconv.Atoi(expiry)
}
