package tenantsdb_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
)

func TestSignUpMakesOwnerOfItsOwnWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)

	found, hash, err := b.Accounts.UserByEmail(t.Context(), "ada@example.com")
	if err != nil || found != b.user || hash != "hash of ada@example.com" {
		t.Fatalf("found %+v with hash %q (%v), want %+v", found, hash, err, b.user)
	}
	memberships, err := b.Workspaces.Memberships(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(memberships) != 1 || memberships[0].Workspace.ID != b.workspace || memberships[0].Role != tenants.Owner ||
		memberships[0].Workspace.Name != "workspace of ada@example.com" {
		t.Fatalf("memberships %+v", memberships)
	}
	members, err := b.Workspaces.Members(t.Context(), b.workspace)
	if err != nil || len(members) != 1 || members[0].User != b.user || members[0].Role != tenants.Owner {
		t.Fatalf("members %+v (%v)", members, err)
	}
}

func TestNewInstallationHasNoWorkspace(t *testing.T) {
	t.Parallel()
	empty := dbtest.New(t).DB
	if has, err := empty.Accounts.HasWorkspaces(t.Context()); has || err != nil {
		t.Errorf("an empty one has a workspace: %v, %v", has, err)
	}
	if has, err := setup(t).Accounts.HasWorkspaces(t.Context()); !has || err != nil {
		t.Errorf("one with a workspace has none: %v, %v", has, err)
	}
}

func TestAddressIsTakenOnlyOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)

	_, _, err := b.Accounts.SignUp(t.Context(), "ada@example.com", "other", "other")
	if !errors.Is(err, tenants.ErrEmailTaken) {
		t.Fatalf("error %v, want ErrEmailTaken", err)
	}
	var workspaces int
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM workspaces").Scan(&workspaces); err != nil {
		t.Fatal(err)
	}
	if workspaces != 1 {
		t.Errorf("the refused sign-up left %d workspaces", workspaces)
	}
}

func TestUnknownAddressIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)

	if _, _, err := b.Accounts.UserByEmail(t.Context(), "nobody@example.com"); !errors.Is(err, tenants.ErrNotFound) {
		t.Fatalf("error %v, want ErrNotFound", err)
	}
}

func TestPersonMayOwnSeveralWorkspaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second, err := b.Workspaces.CreateWorkspace(t.Context(), b.user.ID, "second", 0)
	if err != nil {
		t.Fatal(err)
	}

	memberships, err := b.Workspaces.Memberships(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(memberships) != 2 || memberships[0].Workspace.ID != b.workspace || memberships[1].Workspace != second {
		t.Fatalf("memberships %+v", memberships)
	}
	if _, err := b.Workspaces.CreateWorkspace(t.Context(), uuid.New(), "nobody's", 0); err == nil {
		t.Error("someone who does not exist owns a workspace")
	}
}

// S49: a person owns so many workspaces at most, also if they create several at once.
func TestPersonOwnsSoManyWorkspaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const most, tries = 3, 8
	var created atomic.Int32
	var all sync.WaitGroup
	for range tries {
		all.Go(func() {
			_, err := b.Workspaces.CreateWorkspace(t.Context(), b.user.ID, "another", most)
			if err == nil {
				created.Add(1)
				return
			}
			invalid, is := errors.AsType[tenants.Invalid](err)
			if !is || invalid.Field != "workspace" || !strings.Contains(invalid.Message, "you own 3 workspaces") || !strings.Contains(invalid.Message, "Delete one") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if owned := created.Load() + 1; owned != most {
		t.Errorf("the person owns %d workspaces, want %d", owned, most)
	}
	if _, err := b.Workspaces.CreateWorkspace(t.Context(), b.user.ID, "for the command line", 0); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestActiveLoginSaysWhoIsLoggedInWhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	login := b.logIn(t, time.Hour)

	principal, err := b.Logins.ActiveLogin(t.Context(), b.user.ID, login.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.user.Operator = true // the first of the installation
	if principal.User != b.user || principal.Workspace.ID != b.workspace || principal.Role != tenants.Owner ||
		principal.Login.ID != login.ID || principal.Login.UserAgent != "a browser" || !principal.Login.ExpiresAt.Equal(login.ExpiresAt) {
		t.Fatalf("principal %+v", principal)
	}
}

func TestLoginThatIsNotActiveHasEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stranger, _ := b.signUp(t, "eve@example.com")
	active, revoked, expired := b.logIn(t, time.Hour), b.logIn(t, time.Hour), b.logIn(t, -time.Minute)
	for range 2 { // the second time changes nothing
		if err := b.Logins.RevokeLogin(t.Context(), b.user.ID, revoked.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Logins.RevokeLogin(t.Context(), stranger.ID, active.ID); err != nil {
		t.Fatal(err)
	}

	for name, ids := range map[string][2]uuid.UUID{
		"revoked":        {b.user.ID, revoked.ID},
		"expired":        {b.user.ID, expired.ID},
		"unknown":        {b.user.ID, uuid.New()},
		"someone else's": {stranger.ID, active.ID},
	} {
		if _, err := b.Logins.ActiveLogin(t.Context(), ids[0], ids[1]); !errors.Is(err, tenants.ErrLoginEnded) {
			t.Errorf("%s: error %v, want ErrLoginEnded", name, err)
		}
	}
	if _, err := b.Logins.ActiveLogin(t.Context(), b.user.ID, active.ID); err != nil {
		t.Errorf("a stranger ended the login: %v", err)
	}
	logins, err := b.Logins.Logins(t.Context(), b.user.ID)
	if err != nil || len(logins) != 1 || logins[0].ID != active.ID {
		t.Errorf("active logins %+v (%v)", logins, err)
	}
}

func TestLoginNeedsAMembership(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, foreign := b.signUp(t, "eve@example.com")

	login := tenants.Login{ID: uuid.New(), UserID: b.user.ID, Workspace: foreign, CreatedAt: now(), ExpiresAt: now().Add(time.Hour)}
	if err := b.Logins.CreateLogin(t.Context(), login); !errors.Is(err, tenants.ErrNotFound) {
		t.Fatalf("error %v, want ErrNotFound", err)
	}
}

func (b bundle) logIn(t *testing.T, lasts time.Duration) tenants.Login {
	t.Helper()
	login := tenants.Login{
		ID: uuid.Must(uuid.NewV7()), UserID: b.user.ID, Workspace: b.workspace, UserAgent: "a browser",
		CreatedAt: now(), ExpiresAt: now().Add(lasts),
	}
	if err := b.Logins.CreateLogin(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	return login
}
