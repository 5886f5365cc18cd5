package members

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Who may change and remove whom depends on both roles and on how many owners there are; no one removes
// themselves here.
func TestMembersAreOfferedAsRolesAllow(t *testing.T) {
	t.Parallel()
	ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	for name, c := range map[string]struct {
		role           tenants.Role // of the reader, who is the first
		others         [2]tenants.Role
		change, remove [3]bool
	}{
		"only owner":            {tenants.Owner, [2]tenants.Role{tenants.Admin, tenants.Viewer}, [3]bool{false, true, true}, [3]bool{false, true, true}},
		"two owners":            {tenants.Owner, [2]tenants.Role{tenants.Regular, tenants.Owner}, [3]bool{true, true, true}, [3]bool{false, true, true}},
		"admin below an owner":  {tenants.Admin, [2]tenants.Role{tenants.Owner, tenants.Regular}, [3]bool{true, false, true}, [3]bool{false, false, true}},
		"admin below two":       {tenants.Admin, [2]tenants.Role{tenants.Owner, tenants.Owner}, [3]bool{true, false, false}, [3]bool{false, false, false}},
		"member":                {tenants.Regular, [2]tenants.Role{tenants.Owner, tenants.Viewer}, [3]bool{}, [3]bool{}},
		"billing beside owners": {tenants.Billing, [2]tenants.Role{tenants.Owner, tenants.Owner}, [3]bool{}, [3]bool{}},
	} {
		who := tenants.Principal{User: tenants.User{ID: ids[0]}, Role: c.role}
		members := []tenants.Member{{Role: c.role}, {Role: c.others[0]}, {Role: c.others[1]}}
		for i := range members {
			members[i].User.ID = ids[i]
		}
		for i, row := range newModel(who, members, nil, time.Now()).Rows {
			if row.MayChange != c.change[i] || row.MayRemove != c.remove[i] || row.IsYou != (i == 0) {
				t.Errorf("%s, member %d: may change %t, may remove %t, is the reader %t", name, i, row.MayChange, row.MayRemove, row.IsYou)
			}
		}
	}
}

// Of several invitations each is expired or not, and may be changed or not, by its own time and role.
func TestInvitationsAreOfferedAsRolesAllow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000_000, 0)
	invited := []tenants.Invitation{
		{Role: tenants.Owner, ExpiresAt: now.Add(1)}, {Role: tenants.Viewer, ExpiresAt: now}, {Role: tenants.Admin, ExpiresAt: now.Add(-1)}, {Role: tenants.Regular, ExpiresAt: now.Add(1)},
	}
	for role, may := range map[tenants.Role][4]bool{tenants.Owner: {true, true, true, true}, tenants.Admin: {false, true, true, true}, tenants.Viewer: {}} {
		for i, of := range newModel(tenants.Principal{Role: role}, nil, invited, now).Pending {
			if of.Expired != (i == 1 || i == 2) || of.MayChange != may[i] {
				t.Errorf("%s, invitation %d: expired %t, may change %t", role, i, of.Expired, of.MayChange)
			}
		}
	}
}
