package tenants

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Grantor is the current state of the actor who creates or changes API keys: a member, or a key of a member.
type Grantor struct {
	Person uuid.UUID // the member
	Role   Role      // of the member; "" if they are no longer one
	Rights KeyRights // rights of a key that they create
	Key    *APIKey   // the acting key, with the scopes that it may use; nil for a logged-in member
}

// May reports whether the grantor has a permission.
func (g Grantor) May(permission Permission) bool {
	if g.Key != nil {
		return g.Key.May(permission)
	}
	return g.Role.May(permission)
}

// CheckCreate returns ErrDenied if a key would have more rights than its grantor, an Invalid if it may name
// private base URLs and the grantor may not allow that, and a Forbidden if its limits are wider than those of
// the key that creates it.
func (g Grantor) CheckCreate(key APIKey) error {
	if err := g.checkPrivate(key, nil); err != nil {
		return err
	}
	return g.checkCreate(key)
}

func (g Grantor) checkCreate(key APIKey) error {
	if !g.May(CreateKeys) || !MayGrant(g.May, key.Scopes) {
		return ErrDenied
	}
	return g.checkBounds(key, nil)
}

// checkPrivate returns an Invalid if a grantor who may not manage providers gives a key the right to name
// private base URLs. A key may keep this right.
func (g Grantor) checkPrivate(key APIKey, before *APIKey) error {
	gives := func(key APIKey) bool { return key.Limits.PrivateBaseURL != nil && *key.Limits.PrivateBaseURL }
	if !gives(key) || before != nil && gives(*before) || g.May(ManageProviders) {
		return nil
	}
	return Invalid{Field: "private_base_url", Message: "is for people who may manage provider keys to allow; ask an owner or admin of the workspace"}
}

// CheckChange returns ErrDenied if the grantor may not change the key, an Invalid as CheckCreate does, and a
// Forbidden if the change moves it further beyond the bounds of the acting key.
func (g Grantor) CheckChange(before, after APIKey) error {
	if err := g.checkOwn(before); err != nil {
		return err
	}
	if err := g.checkPrivate(after, &before); err != nil {
		return err
	}
	return g.checkBounds(after, &before)
}

// CheckRotate returns ErrDenied or a Forbidden unless the grantor could create the key, because they see its
// new secret.
func (g Grantor) CheckRotate(key APIKey) error {
	if err := g.checkOwn(key); err != nil {
		return err
	}
	return g.checkCreate(key)
}

// CheckRevoke returns ErrDenied if the key is not the grantor's and they may not manage it. Every active key
// may revoke itself.
func (g Grantor) CheckRevoke(key APIKey) error {
	if g.Key != nil && g.Key.ID == key.ID && g.Key.RevokedAt == nil {
		return nil
	}
	return g.checkOwn(key)
}

func (g Grantor) checkOwn(key APIKey) error {
	if g.May(ManageKeys) || g.May(CreateKeys) && key.CreatedBy == g.Person {
		return nil
	}
	return ErrDenied
}

// checkBounds returns a Forbidden if a key exceeds a bound of the acting key, unless it did so before the
// change.
func (g Grantor) checkBounds(key APIKey, before *APIKey) error {
	if g.Key == nil {
		return nil
	}
	for _, bound := range bounds() {
		if bound.within(key, *g.Key) || before != nil && bound.within(key, *before) {
			continue
		}
		return Forbidden{Code: "key_beyond_bounds", Message: fmt.Sprintf(
			"The API key that you use is bounded by its own %s. Keep %s of the other key within it, or do this on the dashboard's API keys page.", bound.field, bound.field)}
	}
	return nil
}

// bound is one limit of an API key.
type bound struct {
	field  string
	within func(key, of APIKey) bool // the key's limit is not wider than the other's
}

func bounds() []bound {
	all := []bound{
		{"expires_at", func(key, of APIKey) bool { return endsBy(key.ExpiresAt, of.ExpiresAt) }},
		{"allowed_ips", func(key, of APIKey) bool { return covered(key.Limits.Addresses, of.Limits.Addresses, coversNetwork) }},
		{"allowed_models", func(key, of APIKey) bool { return covered(key.Limits.Models, of.Limits.Models, matches) }},
		{"allowed_endpoints", func(key, of APIKey) bool { return covered(key.Limits.Endpoints, of.Limits.Endpoints, matches) }},
		{"lock_overrides", func(key, of APIKey) bool { return key.Limits.LockOverrides || !of.Limits.LockOverrides }},
		{"no_store", func(key, of APIKey) bool { return key.Limits.NoStore || !of.Limits.NoStore }},
		{"private_base_url", func(key, of APIKey) bool {
			by, is := of.Limits.PrivateBaseURL, key.Limits.PrivateBaseURL
			return by == nil || *by || is != nil && !*is
		}},
		{"allow_unpriced", func(key, of APIKey) bool {
			return !key.Limits.AllowUnpriced || of.Limits.AllowUnpriced || !of.Limits.HasBudget()
		}},
	}
	for _, limit := range QuotaLimits() {
		all = append(all, bound{limit.Name, func(key, of APIKey) bool {
			most, asked := limit.Of(of.Limits.Quota), limit.Of(key.Limits.Quota)
			return most == 0 || asked > 0 && asked <= most
		}})
	}
	return all
}

// endsBy reports whether end is not later than by; nil means never.
func endsBy(end, by *time.Time) bool { return by == nil || end != nil && !end.After(*by) }

// covered reports whether each entry of a list is covered by one of another; an empty list covers everything.
func covered[T any](list, by []T, covers func(by, entry T) bool) bool {
	if len(by) == 0 {
		return true
	}
	return len(list) > 0 && !slices.ContainsFunc(list, func(entry T) bool {
		return !slices.ContainsFunc(by, func(wide T) bool { return covers(wide, entry) })
	})
}

func coversNetwork(by, network netip.Prefix) bool {
	return by.Bits() <= network.Bits() && by.Contains(network.Addr())
}
