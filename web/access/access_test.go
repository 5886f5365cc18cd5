package access_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/access"
)

func TestRolesMayDoWhatTheirNamesSay(t *testing.T) {
	t.Parallel()
	me := uuid.New()
	mine, others := tenants.APIKey{CreatedBy: me}, tenants.APIKey{CreatedBy: uuid.New()}

	for role, want := range map[tenants.Role]struct{ tune, create, mine, others, read bool }{
		tenants.Owner:   {true, true, true, true, true},
		tenants.Admin:   {true, true, true, true, true},
		tenants.Regular: {false, true, true, false, true},
		tenants.Viewer:  {},
		tenants.Billing: {},
		"":              {},
	} {
		who := tenants.Principal{User: tenants.User{ID: me}, Role: role}
		got := struct{ tune, create, mine, others, read bool }{
			access.MayTune(role), access.MayCreateKeys(role), access.MayRevoke(who, mine), access.MayRevoke(who, others), access.MayReadTexts(role),
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", role, got, want)
		}
	}
}

func TestCheckDeniesWhatIsNotAllowed(t *testing.T) {
	t.Parallel()

	if err := access.Check(true); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if err := access.Check(false); !errors.Is(err, access.ErrDenied) {
		t.Errorf("not allowed: %v", err)
	}
}
