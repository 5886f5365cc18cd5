package tenantsdb_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestDataSettingsAreKeptAndNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	found, err := b.Data.DataSettings(t.Context(), b.workspace)
	if want := (tenants.DataSettings{TimeZone: "UTC", Text: textPolicy(), EndUsers: tenants.EndUsersHashed}); err != nil || !reflect.DeepEqual(found, want) {
		t.Fatalf("a new workspace has %+v, %v", found, err)
	}
	wanted := tenants.DataSettings{TimeZone: "Asia/Kolkata", NoStore: true, Text: tenants.TextPolicy{Managers: "own", Members: "all", Viewers: "all"},
		Redact: tenants.Redaction{Kinds: []tenants.RedactionKind{tenants.RedactNames, tenants.RedactCards}, Names: []string{"Ada King", "O'Brien, Mia"}}, EndUsers: tenants.EndUsersPlain}
	for range 2 { // the second one changes nothing
		if err := b.Data.SetDataSettings(t.Context(), b.workspace, wanted); err != nil {
			t.Fatal(err)
		}
	}
	if found, err = b.Data.DataSettings(t.Context(), b.workspace); err != nil || !reflect.DeepEqual(found, wanted) {
		t.Errorf("kept %+v, %v", found, err)
	}
	noted, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Action: string(tenants.SettingsSaved)})
	if err != nil || len(noted) != 1 || noted[0].Before["members_read"] != "own" || noted[0].After["members_read"] != "all" || noted[0].After["redact"] != "name, card" {
		t.Errorf("noted %+v, %v", noted, err)
	}
	if _, err := b.Data.DataSettings(t.Context(), tenants.NewWorkspaceID()); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
}

func TestAReaderIsWhatRoleAndPolicySay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := uuid.New()
	if err := b.APIKeys.CreateAPIKey(t.Context(), b.workspace, tenants.APIKey{ID: key, CreatedBy: b.user.ID, APIKeyTimes: tenants.APIKeyTimes{CreatedAt: now()}}, []byte("hash")); err != nil {
		t.Fatal(err)
	}
	others, _ := b.addKey(t, b.workspace)
	b.disown(t, others.ID, uuid.New())
	owner := b.database.Owner(t)
	for _, test := range []struct {
		role tenants.Role
		text tenants.TextPolicy
		want tenants.Reads
	}{
		{tenants.Owner, textPolicy(), tenants.ReadsAll},
		{tenants.Admin, textPolicy(), tenants.ReadsAll},
		{tenants.Admin, tenants.TextPolicy{Managers: "own", Members: "all", Viewers: "all"}, tenants.ReadsOwn},
		{tenants.Regular, textPolicy(), tenants.ReadsOwn},
		{tenants.Regular, tenants.TextPolicy{Managers: "own", Members: "all", Viewers: "none"}, tenants.ReadsAll},
		{tenants.Viewer, textPolicy(), tenants.ReadsNone},
		{tenants.Viewer, tenants.TextPolicy{Managers: "all", Members: "all", Viewers: "all"}, tenants.ReadsAll},
		{tenants.Billing, tenants.TextPolicy{Managers: "all", Members: "all", Viewers: "all"}, tenants.ReadsNone},
	} {
		if err := b.Data.SetDataSettings(t.Context(), b.workspace, tenants.DataSettings{TimeZone: "UTC", Text: test.text}); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.Exec(t.Context(), "UPDATE members SET role = $1 WHERE user_id = $2", string(test.role), b.user.ID); err != nil {
			t.Fatal(err)
		}
		reader, err := b.Data.Reader(t.Context(), b.workspace, b.user.ID)
		got := map[bool]tenants.Reads{true: tenants.ReadsNone}[reader.None()]
		if reader.All {
			got = tenants.ReadsAll
		} else if reader.Own && slices.Equal(reader.Keys, []uuid.UUID{key}) {
			got = tenants.ReadsOwn
		}
		if err != nil || got != test.want {
			t.Errorf("%s under %+v: %+v, %v, want %s", test.role, test.text, reader, err, test.want)
		}
	}
	if reader, err := b.Data.Reader(t.Context(), b.workspace, uuid.New()); err != nil || !reader.None() {
		t.Errorf("who is no member: %+v, %v", reader, err)
	}
}

// textPolicy is that of a workspace that has set none.
func textPolicy() tenants.TextPolicy {
	return tenants.TextPolicy{Managers: tenants.ReadsAll, Members: tenants.ReadsOwn, Viewers: tenants.ReadsNone}
}
