package rotation_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/rotation"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// vaultOf returns a vault on master keys made of one letter each.
func vaultOf(t *testing.T, letters ...string) *vault.Vault {
	t.Helper()
	secrets := make([][]byte, len(letters))
	for i, letter := range letters {
		secrets[i] = bytes.Repeat([]byte(letter), 32)
	}
	made, err := vault.New(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// fill signs two people up, each with a workspace of two provider keys, two alert channels and a
// single sign-on, and with a second factor. All secrets are sealed by a vault.
func fill(t *testing.T, database *dbtest.Database, safe *vault.Vault) {
	t.Helper()
	sealed := func(about string) []byte {
		made, err := safe.SealAbout(about, "secret")
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	db := database.DB
	for person := range 2 {
		user, workspace, err := db.Accounts.SignUp(t.Context(), fmt.Sprintf("person%d@example.com", person), "hash", "workspace")
		if err != nil {
			t.Fatal(err)
		}
		for number := range 2 {
			id := uuid.UUID{byte(person), byte(number)}
			key := tenants.ProviderKey{ID: id, Workspace: workspace.ID, Provider: tenants.ProviderAnthropic, Name: "key", Auth: tenants.AuthAPIKey, CreatedBy: user.ID, CreatedAt: time.Now()}
			if key.Sealed, err = safe.Seal(key, "secret"); err != nil {
				t.Fatal(err)
			}
			channel := tenants.AlertChannel{
				ID: id, Kind: tenants.AlertWebhook, Name: "channel", Place: "example.com", Rules: []tenants.AlertRule{tenants.AlertBudget},
				Sealed: sealed(tenants.AboutAlertChannel(workspace.ID, id)), CreatedAt: time.Now(),
			}
			if err := db.ProviderKeys.AddProviderKey(t.Context(), workspace.ID, key); err != nil {
				t.Fatal(err)
			}
			if err := db.Alerts.AddAlertChannel(t.Context(), workspace.ID, channel); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Factors.StartSecondFactor(t.Context(), user.ID, sealed(tenants.AboutSecondFactor(user.ID)), time.Now()); err != nil {
			t.Fatal(err)
		}
		_, err = database.Owner(t).Exec(t.Context(), "INSERT INTO sign_ons (workspace_id, issuer, client_id, sealed, role) VALUES ($1, 'https://idp.example', 'client', $2, 'member')",
			workspace.ID, sealed(tenants.AboutSignOn(workspace.ID, "https://idp.example", "client")))
		if err != nil {
			t.Fatal(err)
		}
	}
	proof, err := safe.Proof()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := database.Owner(t).Exec(t.Context(), "INSERT INTO master_proof (sealed) VALUES ($1)", proof); err != nil {
		t.Fatal(err)
	}
}

// S15: the first or the last secret of a table cannot be sealed again. The others are, the failure is reported and not
// counted, and the next rotation seals it, too. Before that the old master key is still needed.
func TestRotationGoesOnBehindWhatFails(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	fill(t, database, vaultOf(t, "a"))
	owner := database.Owner(t)
	exec := func(statement string) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused as planned'; END $$")
	masters := "a"
	for table, test := range map[string]struct {
		key    string
		old    string // key of the row before the update
		total  int
		rotate func(context.Context, *tenantsdb.DB, *vault.Vault) (int, error)
	}{
		"provider_keys":  {"id", "OLD.id", 4, rotation.ProviderKeys},
		"alert_channels": {"id", "OLD.id", 4, rotation.AlertChannels},
		"second_factors": {"user_id", "OLD.user_id", 2, rotation.SecondFactors},
		"sign_ons":       {"workspace_id", "OLD.workspace_id", 2, rotation.SignOns},
		"master_proof": {"md5(sealed::text)", "md5(OLD.sealed::text)", 1, func(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) (int, error) {
			done, err := rotation.Proof(ctx, db, safe)
			if done {
				return 1, err
			}
			return 0, err
		}},
	} {
		masters = "a"
		for _, fails := range []string{"min", "max"} {
			next := string(masters[0] + 1)
			newest, both, old := vaultOf(t, next), vaultOf(t, next, masters), vaultOf(t, masters)
			var row string
			if err := owner.QueryRow(t.Context(), "SELECT "+fails+"("+test.key+"::text) FROM "+table).Scan(&row); err != nil {
				t.Fatal(err)
			}
			exec("CREATE TRIGGER refuse BEFORE UPDATE ON " + table + " FOR EACH ROW WHEN (" + test.old + "::text = '" + row + "') EXECUTE FUNCTION refuse()")
			if count, err := test.rotate(t.Context(), database.DB, both); count != test.total-1 && test.total > 1 || err == nil || !strings.Contains(err.Error(), "refused as planned") {
				t.Errorf("%s: %d of %d are sealed again, %v", table, count, test.total, err)
			}
			if count, err := test.rotate(t.Context(), database.DB, newest); err == nil {
				t.Errorf("%s: without the old master key: %d, %v", table, count, err)
			}
			exec("DROP TRIGGER refuse ON " + table)
			for _, want := range []int{1, 0} {
				if count, err := test.rotate(t.Context(), database.DB, both); count != want || err != nil {
					t.Errorf("%s: %d are sealed again, want %d: %v", table, count, want, err)
				}
			}
			if count, err := test.rotate(t.Context(), database.DB, newest); count != 0 || err != nil {
				t.Errorf("%s: with the new master key alone: %d, %v", table, count, err)
			}
			if _, err := test.rotate(t.Context(), database.DB, old); err == nil {
				t.Errorf("%s: the old master key opens all", table)
			}
			masters = next
		}
	}
}
