package tenants_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestRolesMayDoWhatTheirNamesSay(t *testing.T) {
	t.Parallel()
	for permission, roles := range map[tenants.Permission][]tenants.Role{
		tenants.Enter:           {tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing, tenants.Visitor},
		tenants.ReadMetrics:     {tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing, tenants.Visitor},
		tenants.ReadSpend:       {tenants.Owner, tenants.Admin, tenants.Billing, tenants.Visitor},
		tenants.ReadConfig:      {tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Visitor},
		tenants.ReadSessions:    {tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Visitor},
		tenants.ReadArchive:     {tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Visitor},
		tenants.ChangeSessions:  {tenants.Owner, tenants.Admin, tenants.Regular},
		tenants.CreateKeys:      {tenants.Owner, tenants.Admin, tenants.Regular},
		tenants.DeleteSessions:  {tenants.Owner, tenants.Admin},
		tenants.ManageKeys:      {tenants.Owner, tenants.Admin},
		tenants.ManageProviders: {tenants.Owner, tenants.Admin},
		tenants.ManagePipeline:  {tenants.Owner, tenants.Admin},
		tenants.ManagePatterns:  {tenants.Owner, tenants.Admin},
		tenants.ManageMembers:   {tenants.Owner, tenants.Admin},
		tenants.ManageSettings:  {tenants.Owner, tenants.Admin},
		tenants.ReadAudit:       {tenants.Owner, tenants.Admin},
		tenants.ExportWorkspace: {tenants.Owner, tenants.Admin},
		tenants.ManageSignOn:    {tenants.Owner},
		tenants.ManageBilling:   {tenants.Owner, tenants.Billing},
		tenants.DeleteWorkspace: {tenants.Owner},
	} {
		for _, role := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing, tenants.Visitor, ""} {
			if role.May(permission) != slices.Contains(roles, role) {
				t.Errorf("%q may %s: %v", role, permission, role.May(permission))
			}
		}
	}
}

func TestKeysMayDoWhatTheirScopesSay(t *testing.T) {
	t.Parallel()
	for scope, want := range map[tenants.Scope][3]bool{
		tenants.ScopeManage: {true, true, false}, tenants.ScopeRead: {true, false, false}, tenants.ScopeProxy: {}, tenants.ScopeRecall: {true, false, false},
	} {
		key := tenants.APIKey{Scopes: []tenants.Scope{tenants.ScopeProxy, scope}}
		if got := [3]bool{key.May(tenants.ReadArchive), key.May(tenants.ManagePipeline), key.May(tenants.DeleteWorkspace)}; got != want {
			t.Errorf("%s: %v, want %v", scope, got, want)
		}
	}
}

func TestMembersChangeTheirOwnKeysOnly(t *testing.T) {
	t.Parallel()
	me := uuid.New()
	mine, others := tenants.APIKey{CreatedBy: me}, tenants.APIKey{CreatedBy: uuid.New()}
	for role, want := range map[tenants.Role][2]bool{
		tenants.Owner: {true, true}, tenants.Admin: {true, true}, tenants.Regular: {true, false}, tenants.Viewer: {}, tenants.Billing: {},
	} {
		who := tenants.Principal{User: tenants.User{ID: me}, Role: role}
		if got := [2]bool{who.MayChangeKey(mine), who.MayChangeKey(others)}; got != want {
			t.Errorf("%s: %v, want %v", role, got, want)
		}
	}
}
