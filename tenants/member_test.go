package tenants_test

import (
	"errors"
	"testing"

	"palimpsest/tenants"
)

func TestOwnersManageEverybodyAndAdminsAllButOwners(t *testing.T) {
	t.Parallel()
	for _, by := range append(tenants.Roles(), "") {
		for _, other := range append(tenants.Roles(), "", "root") {
			want := by == tenants.Owner && other != "" && other != "root" ||
				by == tenants.Admin && other != "" && other != "root" && other != tenants.Owner
			if by.Manages(other) != want {
				t.Errorf("%q manages %q: %v", by, other, by.Manages(other))
			}
		}
	}
}

func TestRoleChangesThatAreRefusedSayWhy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		by, from, to tenants.Role
		owners       int
		want         error
	}{
		"an owner promotes":               {tenants.Owner, tenants.Viewer, tenants.Owner, 1, nil},
		"an admin promotes":               {tenants.Admin, tenants.Viewer, tenants.Admin, 1, nil},
		"an admin makes an owner":         {tenants.Admin, tenants.Viewer, tenants.Owner, 1, tenants.ErrDenied},
		"an admin raises themselves":      {tenants.Admin, tenants.Admin, tenants.Owner, 1, tenants.ErrDenied},
		"an admin demotes an owner":       {tenants.Admin, tenants.Owner, tenants.Viewer, 2, tenants.ErrDenied},
		"a member raises themselves":      {tenants.Regular, tenants.Regular, tenants.Admin, 1, tenants.ErrDenied},
		"the last owner steps down":       {tenants.Owner, tenants.Owner, tenants.Admin, 1, tenants.ErrLastOwner},
		"one of two owners steps down":    {tenants.Owner, tenants.Owner, tenants.Admin, 2, nil},
		"the last owner stays what it is": {tenants.Owner, tenants.Owner, tenants.Owner, 1, nil},
	} {
		if err := tenants.CheckRoleChange(change.by, change.from, change.to, change.owners); !errors.Is(err, change.want) {
			t.Errorf("%s: %v, want %v", name, err, change.want)
		}
	}
	var invalid tenants.Invalid
	if err := tenants.CheckRoleChange(tenants.Owner, tenants.Viewer, "root", 1); !errors.As(err, &invalid) || invalid.Field != "role" {
		t.Errorf("no role: %v", err)
	}
}

func TestLastOwnerIsNeitherRemovedNorLeaves(t *testing.T) {
	t.Parallel()
	if err := tenants.CheckRemoval(tenants.Owner, tenants.Owner, 1); !errors.Is(err, tenants.ErrLastOwner) {
		t.Errorf("removal: %v", err)
	}
	if err := tenants.CheckRemoval(tenants.Admin, tenants.Owner, 2); !errors.Is(err, tenants.ErrDenied) {
		t.Errorf("removal by an admin: %v", err)
	}
	if err := tenants.CheckLeaving(tenants.Owner, 1); !errors.Is(err, tenants.ErrLastOwner) {
		t.Errorf("leaving: %v", err)
	}
	if err := errors.Join(tenants.CheckRemoval(tenants.Owner, tenants.Owner, 2), tenants.CheckLeaving(tenants.Viewer, 1)); err != nil {
		t.Error(err)
	}
}
