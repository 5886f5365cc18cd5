package main

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
	"palimpsest/tenants/vault/vaulttest"
)

// underMasterKey are the columns with secrets that the master key has sealed.
func underMasterKey() []string {
	return []string{"alert_channels.sealed", "data_keys.wrapped", "mails.sealed", "master_proof.sealed", "provider_keys.sealed", "second_factors.sealed", "sign_ons.sealed"}
}

// underDataKeys are the columns of the same names whose bytes the keys of workspaces have sealed.
func underDataKeys() []string { return []string{"lane_inserts.sealed", "summaries.sealed"} }

// sealedDatabase is a database with one secret of each kind, sealed with a master key.
func sealedDatabase(t *testing.T, safe *vault.Vault) *dbtest.Database {
	t.Helper()
	database := dbtest.New(t)
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: database.AppURL, WorkerURL: database.WorkerURL, Sealer: safe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	user, workspace, err := db.Accounts.SignUp(t.Context(), "ada@example.com", "", "Northbeam")
	if err != nil {
		t.Fatal(err)
	}
	about := func(name string) []byte {
		sealed, err := safe.SealAbout(name, "secret")
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	key := tenants.ProviderKey{ID: uuid.New(), Workspace: workspace.ID, Provider: tenants.ProviderAnthropic, Name: "main", CreatedAt: time.Now()}
	if key.Sealed, err = safe.Seal(key, "secret"); err != nil {
		t.Fatal(err)
	}
	channel := tenants.AlertChannel{ID: uuid.New(), Kind: tenants.AlertWebhook, Name: "on call", Place: "example.com", Rules: tenants.AlertRules(), CreatedAt: time.Now()}
	channel.Sealed = about(tenants.AboutAlertChannel(workspace.ID, channel.ID))
	signOn := tenants.SignOn{Issuer: "https://login.example", ClientID: "client", Role: tenants.Viewer, Sealed: about(tenants.AboutSignOn(workspace.ID, "https://login.example", "client"))}
	proof, err := safe.Proof()
	if err != nil {
		t.Fatal(err)
	}
	_, dataErr := datakeys.New(db.DataKeys, safe).DataKey(t.Context(), workspace.ID)
	_, proofErr := tenantsdb.KeepMasterProof(t.Context(), database.OwnerURL, proof)
	for kind, err := range map[string]error{
		"data key": dataErr, "proof": proofErr,
		"provider key":  db.ProviderKeys.AddProviderKey(t.Context(), workspace.ID, key),
		"alert channel": db.Alerts.AddAlertChannel(t.Context(), workspace.ID, channel),
		"second factor": db.Factors.StartSecondFactor(t.Context(), user.ID, about(tenants.AboutSecondFactor(user.ID)), time.Now()),
		"sign-on":       db.SignOn.SaveSignOn(tenants.WithActor(t.Context(), tenants.Actor{User: user.ID}), workspace.ID, signOn),
		"mail":          db.Mail.QueueMail(t.Context(), nil, tenants.Mail{To: "ada@example.com", Subject: "Hello", Text: "secret"}),
	} {
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	return database
}

// S15: everything that the master key seals is sealed again by one round, and a column that a later
// migration adds has to join it.
func TestEveryColumnUnderTheMasterKeyIsResealed(t *testing.T) {
	t.Parallel()
	database := sealedDatabase(t, vaulttest.Of(t, "o"))
	rows, err := database.Owner(t).Query(t.Context(), `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND data_type = 'bytea' AND column_name IN ('sealed', 'wrapped') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	known := slices.Sorted(slices.Values(append(underMasterKey(), underDataKeys()...)))
	if err != nil || !slices.Equal(columns, known) {
		t.Fatalf("the schema has the sealed columns %v (%v), and the test knows %v", columns, err, known)
	}
	stored := func(column string) (sealed []byte) {
		t.Helper()
		table, name, _ := strings.Cut(column, ".")
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT "+name+" FROM "+table).Scan(&sealed); err != nil {
			t.Fatalf("%s: %v", column, err)
		}
		return sealed
	}
	before := map[string][]byte{}
	for _, column := range underMasterKey() {
		before[column] = stored(column)
	}
	for _, want := range []resealed{{providerKeys: 1, dataKeys: 1, factors: 1, signOns: 1, alertChannels: 1, mails: 1, proof: true}, {}} {
		if got, err := round(t, database, vaulttest.Of(t, "n", "o")); got != want || err != nil {
			t.Errorf("resealed %+v, %v, want %+v", got, err, want)
		}
	}
	for column, was := range before {
		if bytes.Equal(stored(column), was) {
			t.Errorf("%s is as the older key sealed it", column)
		}
	}
	if got, err := round(t, database, vaulttest.Of(t, "n")); got != (resealed{}) || err != nil {
		t.Errorf("with the newer key alone: %+v, %v", got, err)
	}
}

// round seals again with the first of a vault's keys, as a process or the command does.
func round(t *testing.T, database *dbtest.Database, safe *vault.Vault) (resealed, error) {
	t.Helper()
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: database.AppURL, WorkerURL: database.WorkerURL, Sealer: safe})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return reseal(t.Context(), db, datakeys.New(db.DataKeys, safe), safe)
}

// S15: one secret of any kind that does not open keeps the metric at 0, so that no one takes the
// older key away. Mails are the exception: they are dropped when they are to be sent.
func TestOldMasterKeyStaysWhileAnySecretDoesNotOpen(t *testing.T) {
	t.Parallel()
	safe := vaulttest.Of(t, "n", "o")
	database := sealedDatabase(t, vaulttest.Of(t, "o"))
	registry := prometheus.NewRegistry()
	rotation := newRotation(registry, safe.Masters())
	run := func() (done float64, err error) {
		t.Helper()
		err = rotation.run(t.Context(), database.DB, datakeys.New(database.DB.DataKeys, safe), safe, slog.New(slog.DiscardHandler))
		families, gatherErr := registry.Gather()
		if gatherErr != nil {
			t.Fatal(gatherErr)
		}
		for _, family := range families {
			if family.GetName() == "palimpsest_vault_rotation_done" {
				done = family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return done, err
	}
	if done, err := run(); done != 1 || err != nil {
		t.Fatalf("a sound database: %f, %v", done, err)
	}
	for _, column := range underMasterKey() {
		if column == "mails.sealed" {
			continue
		}
		table, name, _ := strings.Cut(column, ".")
		var sound []byte
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT "+name+" FROM "+table).Scan(&sound); err != nil {
			t.Fatal(err)
		}
		put := func(sealed []byte) {
			t.Helper()
			if _, err := database.Owner(t).Exec(t.Context(), "UPDATE "+table+" SET "+name+" = $1", sealed); err != nil {
				t.Fatal(err)
			}
		}
		put([]byte("sealed with a key that is gone"))
		if done, err := run(); done != 0 || err == nil {
			t.Errorf("%s does not open: the metric is %f, %v", column, done, err)
		}
		put(sound)
		if done, err := run(); done != 1 || err != nil {
			t.Errorf("%s is repaired: the metric is %f, %v", column, done, err)
		}
	}
}
