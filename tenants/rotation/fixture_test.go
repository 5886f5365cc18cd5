package rotation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/rotation"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
	"palimpsest/tenants/vault/vaulttest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// rows is how many rows of each kind a test has. The first two belong to one workspace where
// a workspace can have two.
const rows = 3

// place is where a sealed secret lies.
type place struct {
	user      uuid.UUID
	workspace tenants.WorkspaceID
	id        uuid.UUID // in the key column of its table
}

// kind is a kind of sealed secret.
type kind struct {
	table, key string // the column key names a row
	reseal     func(context.Context, *tenantsdb.DB, *vault.Vault) (int, error)
	replace    func(ctx context.Context, db *tenantsdb.DB, at place, old, sealed []byte) error
	add        func(ctx context.Context, db *tenantsdb.DB, at place, sealed []byte) error
	seal       func(safe *vault.Vault, at place, secret string) ([]byte, error)
	open       func(safe *vault.Vault, at place, sealed []byte) (string, error)
}

const issuer, client = "https://login.example", "client"

// kinds returns all kinds that the package seals again, beside the proof.
func kinds() []kind {
	list := []kind{
		{table: "provider_keys", key: "id", reseal: rotation.ProviderKeys, add: addProviderKey, seal: sealProviderKey, open: openProviderKey, replace: func(ctx context.Context, db *tenantsdb.DB, at place, old, sealed []byte) error {
			return db.ProviderKeys.ResealProviderKey(ctx, at.workspace, at.id, old, sealed)
		}},
		about("alert_channels", "id", func(at place) string { return tenants.AboutAlertChannel(at.workspace, at.id) }),
		about("sign_ons", "workspace_id", func(at place) string { return tenants.AboutSignOn(at.workspace, issuer, client) }),
		about("second_factors", "user_id", func(at place) string { return tenants.AboutSecondFactor(at.user) }),
	}
	channels, signOns, factors := &list[1], &list[2], &list[3]
	channels.reseal, channels.add, channels.replace = rotation.AlertChannels, addChannel, func(ctx context.Context, db *tenantsdb.DB, at place, old, sealed []byte) error {
		return db.Alerts.ResealAlertChannel(ctx, at.workspace, at.id, old, sealed)
	}
	signOns.reseal, signOns.add, signOns.replace = rotation.SignOns, addSignOn, func(ctx context.Context, db *tenantsdb.DB, at place, old, sealed []byte) error {
		return db.SignOn.ResealSignOn(ctx, at.workspace, old, sealed)
	}
	factors.reseal, factors.replace = rotation.SecondFactors, func(ctx context.Context, db *tenantsdb.DB, at place, old, sealed []byte) error {
		return db.Factors.ResealSecondFactor(ctx, at.user, old, sealed)
	}
	factors.add = func(ctx context.Context, db *tenantsdb.DB, at place, sealed []byte) error {
		return db.Factors.StartSecondFactor(ctx, at.user, sealed, time.Now())
	}
	return list
}

// about returns a kind whose secrets are sealed about a name.
func about(table, key string, name func(place) string) kind {
	return kind{
		table: table, key: key,
		seal: func(safe *vault.Vault, at place, secret string) ([]byte, error) {
			return safe.SealAbout(name(at), secret)
		},
		open: func(safe *vault.Vault, at place, sealed []byte) (string, error) {
			secret, _, err := safe.OpenAbout(name(at), sealed)
			return secret, err
		},
	}
}

func providerKey(at place) tenants.ProviderKey {
	return tenants.ProviderKey{ID: at.id, Workspace: at.workspace, Provider: tenants.ProviderAnthropic, Name: at.id.String(), CreatedAt: time.Now()}
}

func sealProviderKey(safe *vault.Vault, at place, secret string) ([]byte, error) {
	return safe.Seal(providerKey(at), secret)
}

func openProviderKey(safe *vault.Vault, at place, sealed []byte) (string, error) {
	key := providerKey(at)
	key.Sealed = sealed
	return safe.Open(key)
}

func addProviderKey(ctx context.Context, db *tenantsdb.DB, at place, sealed []byte) error {
	key := providerKey(at)
	key.Sealed, key.SealedAt = sealed, time.Now()
	return db.ProviderKeys.AddProviderKey(ctx, at.workspace, key)
}

func addChannel(ctx context.Context, db *tenantsdb.DB, at place, sealed []byte) error {
	return db.Alerts.AddAlertChannel(ctx, at.workspace, tenants.AlertChannel{
		ID: at.id, Kind: tenants.AlertWebhook, Name: "on call", Place: "example.com", Rules: tenants.AlertRules(), Sealed: sealed, CreatedAt: time.Now(),
	})
}

func addSignOn(ctx context.Context, db *tenantsdb.DB, at place, sealed []byte) error {
	actor := tenants.WithActor(ctx, tenants.Actor{User: at.user})
	return db.SignOn.SaveSignOn(actor, at.workspace, tenants.SignOn{Issuer: issuer, ClientID: client, Sealed: sealed, Role: tenants.Viewer})
}

// bundle is a database with rows of each kind, sealed with the older master key.
type bundle struct {
	*dbtest.Database

	older, newer *vault.Vault // with one master key each
	both         *vault.Vault // the newer one seals
	foreign      *vault.Vault
	places       map[string][]place // by table
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{
		Database: dbtest.New(t), older: vaulttest.Of(t, "o"), newer: vaulttest.Of(t, "n"), both: vaulttest.Of(t, "n", "o"), foreign: vaulttest.Of(t, "f"), places: map[string][]place{},
	}
	var people []place
	for i := range rows {
		user, workspace, err := b.DB.Accounts.SignUp(t.Context(), fmt.Sprintf("person%d@example.com", i), "", "workspace")
		if err != nil {
			t.Fatal(err)
		}
		people = append(people, place{user: user.ID, workspace: workspace.ID})
	}
	for _, kind := range kinds() {
		for i, at := range people {
			switch kind.key {
			case "workspace_id":
				at.id = uuid.UUID(at.workspace)
			case "user_id":
				at.id = at.user
			default:
				at = people[max(i-1, 0)]
				at.id = uuid.Must(uuid.NewV7())
			}
			sealed, err := kind.seal(b.older, at, secretOf(at))
			if err != nil {
				t.Fatal(err)
			}
			if err := kind.add(t.Context(), b.DB, at, sealed); err != nil {
				t.Fatalf("%s: %v", kind.table, err)
			}
			b.places[kind.table] = append(b.places[kind.table], at)
		}
	}
	return b
}

func secretOf(at place) string { return "secret of " + at.id.String() }

// stored returns the sealed bytes of a row.
func (b *bundle) stored(t *testing.T, kind kind, at place) []byte {
	t.Helper()
	var sealed []byte
	if err := b.Owner(t).QueryRow(t.Context(), "SELECT sealed FROM "+kind.table+" WHERE "+kind.key+" = $1", at.id).Scan(&sealed); err != nil {
		t.Fatal(err)
	}
	return sealed
}

// put changes the sealed bytes of a row.
func (b *bundle) put(t *testing.T, kind kind, at place, sealed []byte) {
	t.Helper()
	b.exec(t, "UPDATE "+kind.table+" SET sealed = $1 WHERE "+kind.key+" = $2", sealed, at.id)
}

func (b *bundle) exec(t *testing.T, statement string, values ...any) {
	t.Helper()
	if _, err := b.Owner(t).Exec(t.Context(), statement, values...); err != nil {
		t.Fatal(err)
	}
}

// opened counts the rows of a kind that a vault opens, which must hold their own secrets.
func (b *bundle) opened(t *testing.T, kind kind, safe *vault.Vault) int {
	t.Helper()
	count := 0
	for _, at := range b.places[kind.table] {
		secret, err := kind.open(safe, at, b.stored(t, kind, at))
		if err != nil {
			continue
		}
		count++
		if secret != secretOf(at) {
			t.Errorf("%s: row %s holds %q", kind.table, at.id, secret)
		}
	}
	return count
}

// failAt has the nth update of a kind's table fail.
func (b *bundle) failAt(t *testing.T, kind kind, nth int) (repair func()) {
	t.Helper()
	b.exec(t, "CREATE SEQUENCE writes")
	b.exec(t, fmt.Sprintf(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
		$$ BEGIN IF nextval('public.writes') = %d THEN RAISE EXCEPTION 'planned failure'; END IF; RETURN NEW; END $$`, nth))
	b.exec(t, "CREATE TRIGGER fail BEFORE UPDATE ON "+kind.table+" FOR EACH ROW EXECUTE FUNCTION fail()")
	return func() {
		t.Helper()
		b.exec(t, "DROP FUNCTION fail CASCADE")
		b.exec(t, "DROP SEQUENCE writes")
	}
}
