package tenants_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// networks reads networks that a test names.
func networks(t *testing.T, names ...string) []netip.Prefix {
	t.Helper()
	addresses, err := tenants.ParseAddresses(names)
	if err != nil {
		t.Fatal(err)
	}
	return addresses
}

// S3: what a key is held to, each key that it makes is held to as well, in every respect.
func TestKeyMakesNoKeyThatIsHeldToLess(t *testing.T) {
	t.Parallel()
	soon, later := time.Now(), time.Now().Add(time.Hour)
	quota := func(q tenants.Quota) tenants.APIKey { return tenants.APIKey{Limits: tenants.Limits{Quota: q}} }
	limits := func(l tenants.Limits) tenants.APIKey { return tenants.APIKey{Limits: l} }
	free := tenants.APIKey{}
	for field, keys := range map[string]struct {
		by     tenants.APIKey
		beyond []tenants.APIKey
	}{
		"expires_at": {tenants.APIKey{APIKeyTimes: tenants.APIKeyTimes{ExpiresAt: &soon}}, []tenants.APIKey{{APIKeyTimes: tenants.APIKeyTimes{ExpiresAt: &later}}, free}},
		"allowed_ips": {limits(tenants.Limits{Addresses: networks(t, "10.0.0.0/16")}), []tenants.APIKey{
			limits(tenants.Limits{Addresses: networks(t, "10.0.0.0/15")}), limits(tenants.Limits{Addresses: networks(t, "10.0.2.3", "10.2.0.1")}), free}},
		"allowed_models": {limits(tenants.Limits{Models: []string{"claude-*"}}), []tenants.APIKey{
			limits(tenants.Limits{Models: []string{"claude-opus", "gpt-5"}}), limits(tenants.Limits{Models: []string{"*"}}), free}},
		"allowed_endpoints":   {limits(tenants.Limits{Endpoints: []string{"/v1/messages"}}), []tenants.APIKey{limits(tenants.Limits{Endpoints: []string{"/v1/responses"}}), free}},
		"lock_overrides":      {limits(tenants.Limits{LockOverrides: true}), []tenants.APIKey{free}},
		"no_store":            {limits(tenants.Limits{NoStore: true}), []tenants.APIKey{free}},
		"private_base_url":    {limits(tenants.Limits{PrivateBaseURL: new(false)}), []tenants.APIKey{free, limits(tenants.Limits{PrivateBaseURL: new(true)})}},
		"requests_per_minute": {quota(tenants.Quota{RequestsPerMinute: 5}), []tenants.APIKey{quota(tenants.Quota{RequestsPerMinute: 6}), free}},
		"tokens_per_minute":   {quota(tenants.Quota{TokensPerMinute: 5}), []tenants.APIKey{quota(tenants.Quota{TokensPerMinute: 6}), free}},
		"concurrency":         {quota(tenants.Quota{Concurrency: 5}), []tenants.APIKey{quota(tenants.Quota{Concurrency: 6}), free}},
		"budget_day_usd":      {quota(tenants.Quota{DayMicroUSD: 5}), []tenants.APIKey{quota(tenants.Quota{DayMicroUSD: 6}), free}},
		"budget_month_usd":    {quota(tenants.Quota{MonthMicroUSD: 5}), []tenants.APIKey{quota(tenants.Quota{MonthMicroUSD: 6}), free}},
		"allow_unpriced":      {quota(tenants.Quota{MonthMicroUSD: 5}), []tenants.APIKey{quota(tenants.Quota{MonthMicroUSD: 5, AllowUnpriced: true})}},
	} {
		keys.by.Scopes = []tenants.Scope{tenants.ScopeManage}
		by := tenants.Grantor{Person: uuid.New(), Role: tenants.Owner, Key: &keys.by}
		person := tenants.Grantor{Person: by.Person, Role: tenants.Owner}
		same := keys.by
		if err := by.CheckCreate(same); err != nil {
			t.Errorf("%s, as narrow: %v", field, err)
		}
		for _, key := range keys.beyond {
			key.Scopes = same.Scopes
			forbidden, is := errors.AsType[tenants.Forbidden](by.CheckCreate(key))
			if !is || forbidden.Code != "key_beyond_bounds" || !strings.Contains(forbidden.Message, "its own "+field+".") {
				t.Errorf("%s, beyond by %+v: %+v", field, key.Limits, forbidden)
			}
			if err := by.CheckChange(same, key); err == nil {
				t.Errorf("%s is changed to %+v", field, key.Limits)
			}
			if err := errors.Join(by.CheckChange(key, key), person.CheckCreate(key)); err != nil {
				t.Errorf("%s, left as it was, or by a person: %v", field, err)
			}
		}
	}
}

// S13, S35: whichever workspace a login of single sign-on has come to, it opens that of its
// company only, and operates nothing.
func TestLoginOfSingleSignOnIsBoundToItsWorkspace(t *testing.T) {
	t.Parallel()
	company, elsewhere := tenants.Workspace{ID: tenants.NewWorkspaceID()}, tenants.Workspace{ID: tenants.NewWorkspaceID()}
	who := tenants.Principal{
		User: tenants.User{Operator: true}, Role: tenants.Owner,
		Memberships: []tenants.Membership{{Workspace: elsewhere, Role: tenants.Owner}, {Workspace: company, Role: tenants.Viewer}},
	}
	for name, test := range map[string]struct {
		at      tenants.Workspace
		signOn  tenants.WorkspaceID
		want    tenants.Workspace
		role    tenants.Role
		belongs int
	}{
		"its own":                {company, company.ID, company, tenants.Owner, 1},
		"another":                {elsewhere, company.ID, tenants.Workspace{}, "", 1},
		"none that is left":      {elsewhere, tenants.NewWorkspaceID(), tenants.Workspace{}, "", 0},
		"without single sign-on": {elsewhere, tenants.WorkspaceID{}, elsewhere, tenants.Owner, 2},
	} {
		asked := who
		asked.Workspace, asked.Login.SignOn = test.at, test.signOn
		got := asked.Bound()
		if got.Workspace != test.want || got.Role != test.role || len(got.Memberships) != test.belongs || got.User.Operator != test.signOn.IsZero() {
			t.Errorf("%s: %+v as %q of %d, operator %t", name, got.Workspace, got.Role, len(got.Memberships), got.User.Operator)
		}
	}
}

// S51: only who may manage providers allows private base URLs; who may not keeps what a key has,
// takes it away, and rotates it.
func TestOnlyWhoManagesProvidersAllowsPrivateBaseURLs(t *testing.T) {
	t.Parallel()
	person := uuid.New()
	key := func(private *bool) tenants.APIKey {
		return tenants.APIKey{CreatedBy: person, Scopes: []tenants.Scope{tenants.ScopeProxy}, Limits: tenants.Limits{PrivateBaseURL: private}}
	}
	yes, no, byRole := key(new(true)), key(new(false)), key(nil)
	for role, may := range map[tenants.Role]bool{tenants.Owner: true, tenants.Admin: true, tenants.Regular: false} {
		by := tenants.Grantor{Person: person, Role: role}
		for name, err := range map[string]error{"create": by.CheckCreate(yes), "change": by.CheckChange(no, yes), "change from the role's": by.CheckChange(byRole, yes)} {
			if invalid, is := errors.AsType[tenants.Invalid](err); may != (err == nil) || err != nil && (!is || invalid.Field != "private_base_url") {
				t.Errorf("%s, %s: %v", role, name, err)
			}
		}
		for name, err := range map[string]error{
			"create without": by.CheckCreate(no), "create by role": by.CheckCreate(byRole), "keep": by.CheckChange(yes, yes), "take": by.CheckChange(yes, no), "rotate": by.CheckRotate(yes),
		} {
			if err != nil {
				t.Errorf("%s, %s: %v", role, name, err)
			}
		}
		if byRole.Limits.NamesPrivate(role) != may || !yes.Limits.NamesPrivate(role) || no.Limits.NamesPrivate(role) {
			t.Errorf("%s: by role %v", role, byRole.Limits.NamesPrivate(role))
		}
	}
}

// A key may revoke itself without a permission, but not once it is revoked, and no other key.
func TestKeyRevokesItselfWhileItWorks(t *testing.T) {
	t.Parallel()
	revoked := time.Now()
	active, ended := tenants.APIKey{ID: uuid.New()}, tenants.APIKey{ID: uuid.New()}
	ended.RevokedAt = &revoked
	for name, test := range map[string]struct {
		by, key tenants.APIKey
		may     bool
	}{
		"itself": {active, active, true}, "itself, revoked": {ended, ended, false}, "another": {active, ended, false},
	} {
		if err := (tenants.Grantor{Key: &test.by}).CheckRevoke(test.key); (err == nil) != test.may {
			t.Errorf("%s: %v", name, err)
		}
	}
}
