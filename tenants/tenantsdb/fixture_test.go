package tenantsdb_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// bundle is a database with one workspace.
type bundle struct {
	*tenantsdb.DB

	database  *dbtest.Database
	user      tenants.User
	workspace tenants.WorkspaceID
}

func setup(t *testing.T) bundle {
	t.Helper()
	database := dbtest.New(t)
	b := bundle{DB: database.DB, database: database}
	b.user, b.workspace = b.signUp(t, "ada@example.com")
	return b
}

// signUp adds a person with a workspace of their own.
func (b bundle) signUp(t *testing.T, email string) (tenants.User, tenants.WorkspaceID) {
	t.Helper()
	user, workspace, err := b.Accounts.SignUp(t.Context(), email, "hash of "+email, "workspace of "+email)
	if err != nil {
		t.Fatal(err)
	}
	return user, workspace.ID
}

// addKey stores an API key of a workspace, of its first owner, and returns it with its hash.
func (b bundle) addKey(t *testing.T, workspace tenants.WorkspaceID) (tenants.APIKey, []byte) {
	t.Helper()
	members, err := b.Workspaces.Members(t.Context(), workspace)
	if err != nil {
		t.Fatal(err)
	}
	hash := make([]byte, 32)
	_, _ = rand.Read(hash)
	key := tenants.APIKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: workspace, Name: "laptop", Prefix: "plm_live_ab", Suffix: "wxyz",
		Scopes: []tenants.Scope{tenants.ScopeProxy, tenants.ScopeRead}, CreatedBy: members[0].User.ID,
		APIKeyTimes: tenants.APIKeyTimes{CreatedAt: now()},
	}
	if err := b.APIKeys.CreateAPIKey(t.Context(), workspace, key, hash); err != nil {
		t.Fatal(err)
	}
	return key, hash
}

// disown has an API key be that of a person or key, without a look at their rights.
func (b bundle) disown(t *testing.T, key, creator uuid.UUID) {
	t.Helper()
	if _, err := b.database.Owner(t).Exec(t.Context(), "UPDATE api_keys SET created_by = $1 WHERE id = $2", creator, key); err != nil {
		t.Fatal(err)
	}
}

// now is the time as the database keeps it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
