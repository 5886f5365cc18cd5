package tenantsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// race runs functions that all have to wait for rows that a query locks, and lets them go on
// once each of them waits or is done. It returns their errors.
func (b bundle) race(t *testing.T, lock string, value any, attempts ...func() error) []error {
	t.Helper()
	owner := b.database.Owner(t)
	gate, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Rollback(context.WithoutCancel(t.Context())) }()
	if locked, err := gate.Exec(t.Context(), lock+" FOR UPDATE", value); err != nil || locked.RowsAffected() == 0 {
		t.Fatalf("%d rows are locked (%v)", locked.RowsAffected(), err)
	}
	type outcome struct {
		attempt int
		err     error
	}
	done := make(chan outcome, len(attempts))
	for i, attempt := range attempts {
		go func() { done <- outcome{i, attempt()} }()
	}
	for waiting := 0; waiting+len(done) < len(attempts); {
		err := owner.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(done) == len(attempts) {
		t.Error("none of them met the lock")
	}
	if err := gate.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(attempts))
	for range attempts {
		one := <-done
		errs[one.attempt] = one.err
	}
	return errs
}

// onlyOne checks that one of some attempts worked, and that the others were told why not.
func onlyOne(t *testing.T, errs []error, refused ...error) {
	t.Helper()
	worked := 0
	for _, err := range errs {
		if err == nil {
			worked++
			continue
		}
		known := false
		for _, kind := range refused {
			known = known || errors.Is(err, kind)
		}
		if !known {
			t.Errorf("refused with %v, want one of %v", err, refused)
		}
	}
	if worked != 1 {
		t.Errorf("%d of %d worked: %v", worked, len(errs), errs)
	}
}

// invite invites an address to the bundle's workspace; the link has a hash.
func (b bundle) invite(t *testing.T, email, hash string) {
	t.Helper()
	if err := b.Invitations.CreateInvitations(as(t, b.user), b.workspace, wantedInvitation(email, tenants.Regular, hash)); err != nil {
		t.Fatal(err)
	}
}

// wantedInvitation is an invitation to store, as a list.
func wantedInvitation(email string, role tenants.Role, hash string) []tenants.NewInvitation {
	letter := func(invitation tenants.Invitation) (tenants.Mail, error) {
		return tenants.Mail{To: invitation.Email, Subject: "invitation"}, nil
	}
	invitation := tenants.Invitation{ID: uuid.Must(uuid.NewV7()), Email: email, Role: role, SentAt: now(), ExpiresAt: now().AddDate(0, 0, 1), CreatedAt: now()}
	return []tenants.NewInvitation{{Invitation: invitation, Hash: []byte(hash), Mail: letter}}
}

// logInElsewhere has a person log in to their own workspace.
func (b bundle) logInElsewhere(t *testing.T, user tenants.User) uuid.UUID {
	t.Helper()
	memberships, err := b.Workspaces.Memberships(t.Context(), user.ID)
	if err != nil {
		t.Fatal(err)
	}
	login := tenants.Login{ID: uuid.Must(uuid.NewV7()), UserID: user.ID, Workspace: memberships[0].Workspace.ID, CreatedAt: now(), ExpiresAt: now().Add(time.Hour)}
	if err := b.Logins.CreateLogin(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	return login.ID
}

// redeem signs the person up whom the link new invites.
func (b bundle) redeem(t *testing.T) func() error {
	t.Helper()
	return func() error {
		_, _, err := b.Invitations.SignUpInvited(t.Context(), []byte("new"), tenants.Joining{PasswordHash: "x", Mails: func(string) []tenants.LinkMail { return nil }})
		return err
	}
}

// S12: of two who redeem one invitation at once, one becomes a member.
func TestInvitationIsRedeemedOnceAlsoByTwoAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const invitations = "SELECT FROM invitations WHERE hash = $1"
	b.invite(t, "new@example.com", "new")
	errs := b.race(t, invitations, []byte("new"), b.redeem(t), b.redeem(t))
	onlyOne(t, errs, tenants.ErrInvitation, tenants.ErrEmailTaken)

	known, _ := b.signUp(t, "known@example.com")
	b.invite(t, known.Email, "known")
	login := b.logInElsewhere(t, known)
	accept := func() error { return b.Invitations.AcceptInvitation(t.Context(), []byte("known"), known.ID, login) }
	onlyOne(t, b.race(t, invitations, []byte("known"), accept, accept), tenants.ErrInvitation)

	members, err := b.Workspaces.Members(t.Context(), b.workspace)
	if err != nil || len(members) != 3 {
		t.Errorf("%d members, want 3 (%v)", len(members), err)
	}
}

// An invitation that is revoked while it is redeemed makes a member or was revoked, not both.
func TestInvitationIsRedeemedOrRevoked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.invite(t, "new@example.com", "new")
	pending, err := b.Invitations.Invitations(t.Context(), b.workspace)
	if err != nil {
		t.Fatal(err)
	}
	revoke := func() error { return b.Invitations.RevokeInvitation(as(t, b.user), b.workspace, pending[0].ID) }
	errs := b.race(t, "SELECT FROM invitations WHERE hash = $1", []byte("new"), b.redeem(t), revoke)
	members, err := b.Workspaces.Members(t.Context(), b.workspace)
	if err != nil || (errs[0] == nil) != (len(members) == 2) || errs[0] != nil && !errors.Is(errs[0], tenants.ErrInvitation) {
		t.Errorf("%v, %d members (%v)", errs, len(members), err)
	}
	var both int
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM invitations WHERE accepted_at IS NOT NULL AND revoked_at IS NOT NULL").Scan(&both); err != nil || both != 0 {
		t.Errorf("%d invitations are accepted and revoked (%v)", both, err)
	}
}

// S36: a key that is rotated twice at once has two secrets, the later one and the one before
// it for its grace; the one that both replaced is over.
func TestKeyRotatedTwiceAtOnceKeepsTheTwoNewSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, original := b.addKey(t, b.workspace)
	rotate := func(hash string) func() error {
		rotation := tenants.Rotation{Prefix: "plm_live_xy", Suffix: "abcd", Hash: []byte(hash), OldUntil: now().AddDate(0, 0, 1)}
		return func() error { return b.APIKeys.RotateAPIKey(as(t, b.user), b.workspace, key.ID, rotation) }
	}
	for _, err := range b.race(t, "SELECT FROM api_keys WHERE id = $1", key.ID, rotate("one"), rotate("other")) {
		if err != nil {
			t.Error(err)
		}
	}
	for _, hash := range []string{"one", "other"} {
		if found, err := b.APIKeys.APIKeyByHash(t.Context(), []byte(hash)); err != nil || found.ID != key.ID {
			t.Errorf("the secret %s: %v", hash, err)
		}
	}
	if _, err := b.APIKeys.APIKeyByHash(t.Context(), original); !errors.Is(err, tenants.ErrKeyUnknown) {
		t.Errorf("the secret that both replaced: %v", err)
	}
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 10})
	rotated := 0
	for _, entry := range entries {
		if entry.Action == tenants.KeyRotated {
			rotated++
		}
	}
	if err != nil || rotated != 2 {
		t.Errorf("%d rotations are noted (%v)", rotated, err)
	}
}

// A key that is revoked while it is rotated is revoked, and so is its new secret.
func TestKeyRevokedWhileItIsRotatedIsRevoked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, original := b.addKey(t, b.workspace)
	rotation := tenants.Rotation{Prefix: "plm_live_xy", Suffix: "abcd", Hash: []byte("new"), OldUntil: now().AddDate(0, 0, 1)}
	errs := b.race(t, "SELECT FROM api_keys WHERE id = $1", key.ID,
		func() error { return b.APIKeys.RotateAPIKey(as(t, b.user), b.workspace, key.ID, rotation) },
		func() error { return b.APIKeys.RevokeAPIKey(as(t, b.user), b.workspace, key.ID) })
	if errs[1] != nil {
		t.Errorf("revoke: %v", errs[1])
	}
	for _, hash := range [][]byte{original, []byte("new")} {
		if found, err := b.APIKeys.APIKeyByHash(t.Context(), hash); err == nil && found.RevokedAt == nil || err != nil && !errors.Is(err, tenants.ErrKeyUnknown) {
			t.Errorf("%q still works: %+v (%v)", hash, found, err)
		}
	}
}

// One owner stays when two take each other's role, or give up their own, at once.
func TestOneOwnerStaysWhenTwoAreDemotedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second := b.join(t, "second@example.com", tenants.Owner)
	const workspaces = "SELECT FROM workspaces WHERE workspace_id = $1"
	demote := func(by, whom tenants.User) func() error {
		return func() error { return b.Workspaces.ChangeRole(as(t, by), b.workspace, whom.ID, tenants.Viewer) }
	}
	owners := func() (count int) {
		for _, user := range []tenants.User{b.user, second} {
			if b.role(t, user.ID) == tenants.Owner {
				count++
			}
		}
		return count
	}
	onlyOne(t, b.race(t, workspaces, b.workspace, demote(b.user, second), demote(second, b.user)), tenants.ErrDenied, tenants.ErrLastOwner)
	if owners() != 1 {
		t.Errorf("%d owners stay after each demoted the other", owners())
	}
	if _, err := b.database.Owner(t).Exec(t.Context(), "UPDATE members SET role = 'owner' WHERE workspace_id = $1", b.workspace); err != nil {
		t.Fatal(err)
	}
	onlyOne(t, b.race(t, workspaces, b.workspace, demote(b.user, b.user), demote(second, second)), tenants.ErrLastOwner)
	if owners() != 1 {
		t.Errorf("%d owners stay after both stepped down", owners())
	}
	if _, err := b.database.Owner(t).Exec(t.Context(), "UPDATE members SET role = 'owner' WHERE workspace_id = $1", b.workspace); err != nil {
		t.Fatal(err)
	}
	remove := func() error { return b.Workspaces.RemoveMember(as(t, second), b.workspace, b.user.ID, true) }
	onlyOne(t, b.race(t, workspaces, b.workspace, remove, demote(b.user, second)), tenants.ErrDenied, tenants.ErrLastOwner, tenants.ErrNotFound)
	if owners() != 1 {
		t.Errorf("%d owners stay after one removed the other, who demoted the first", owners())
	}
}

// S31: nobody joins a workspace that is being deleted, by whichever door, and nothing of them
// is left in it.
func TestNobodyJoinsAWorkspaceThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (bundle, tenants.User) {
		t.Helper()
		b := setup(t)
		known, _ := b.signUp(t, "known@example.com")
		b.invite(t, "new@example.com", "new")
		b.invite(t, known.Email, "known")
		if _, err := b.database.Owner(t).Exec(t.Context(), "INSERT INTO sign_on_domains (workspace_id, domain, token, proven_at) VALUES ($1, 'example.com', 'x', now())", b.workspace); err != nil {
			t.Fatal(err)
		}
		return b, known
	}
	for name, join := range map[string]func(b bundle, known tenants.User) error{
		"someone new signs up": func(b bundle, _ tenants.User) error { return b.redeem(t)() },
		"someone known accepts": func(b bundle, known tenants.User) error {
			return b.Invitations.AcceptInvitation(t.Context(), []byte("known"), known.ID, b.logInElsewhere(t, known))
		},
		"someone signs on": func(b bundle, _ tenants.User) error {
			_, err := b.SignOn.SignOnUser(t.Context(), b.workspace, tenants.SignOnProof{Issuer: "https://id.example.com", Subject: "1", Email: "hers@example.com"}, tenants.Regular)
			return err
		},
		"another is invited": func(b bundle, _ tenants.User) error {
			return b.Invitations.CreateInvitations(as(t, b.user), b.workspace, wantedInvitation("late@example.com", tenants.Viewer, "late"))
		},
		"a key is made": func(b bundle, _ tenants.User) error {
			key := tenants.APIKey{ID: uuid.Must(uuid.NewV7()), Workspace: b.workspace, Name: "late", Scopes: []tenants.Scope{tenants.ScopeProxy}, CreatedBy: b.user.ID, APIKeyTimes: tenants.APIKeyTimes{CreatedAt: now()}}
			return b.APIKeys.CreateAPIKey(as(t, b.user), b.workspace, key, []byte("late"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, known := open(t)
			closing := func() error {
				return b.Deletion.CloseWorkspace(as(t, b.user), b.workspace, func(tenants.Tenant) error { return nil })
			}
			errs := b.race(t, "SELECT FROM workspaces WHERE workspace_id = $1", b.workspace, closing, func() error { return join(b, known) })
			if errs[0] != nil {
				t.Errorf("delete: %v", errs[0])
			}
			b.holdsNobody(t, errs[1])

			// The other order: they come once everything is gone, and before that is committed.
			b, known = open(t)
			joined := make(chan error, 1)
			err := b.Deletion.CloseWorkspace(as(t, b.user), b.workspace, func(tenants.Tenant) error {
				go func() { joined <- join(b, known) }()
				for waiting := 0; waiting == 0 && len(joined) == 0; {
					err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("delete: %v", err)
			}
			b.holdsNobody(t, <-joined)
		})
	}
}

// holdsNobody checks that the bundle's workspace, which is deleted, has no members, no keys
// and no one who belongs to it alone; err is what someone was told who joined meanwhile.
func (b bundle) holdsNobody(t *testing.T, err error) {
	t.Helper()
	for what, query := range map[string]string{
		"members":                      "SELECT count(*) FROM members WHERE workspace_id = $1",
		"keys":                         "SELECT count(*) FROM api_keys WHERE workspace_id = $1",
		"people who belong nowhere":    "SELECT count(*) FROM users u WHERE $1::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM members m WHERE m.user_id = u.id) AND NOT EXISTS (SELECT FROM operators o WHERE o.user_id = u.id)",
		"logins":                       "SELECT count(*) FROM logins WHERE workspace_id = $1",
		"invitations that can be used": "SELECT count(*) FROM invitations WHERE workspace_id = $1 AND accepted_at IS NULL AND revoked_at IS NULL AND EXISTS (SELECT FROM workspaces w WHERE w.workspace_id = $1 AND w.deleted_at IS NULL)",
	} {
		var left int
		if scanErr := b.database.Owner(t).QueryRow(t.Context(), query, b.workspace).Scan(&left); scanErr != nil || left != 0 {
			t.Errorf("%d %s are left (%v); who joined was told: %v", left, what, scanErr, err)
		}
	}
}

// S12: a link resets a password once, also when it is used twice at the same moment.
func TestPasswordIsResetOnceAlsoTwiceAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.Accounts.SendLetters(t.Context(), b.user.ID, []tenants.LinkMail{letter(tenants.TokenReset, b.user.Email, "link")}); err != nil {
		t.Fatal(err)
	}
	reset := func(password string) func() error {
		return func() error { return b.Accounts.ResetPassword(t.Context(), []byte("link"), now(), password, notice) }
	}
	errs := b.race(t, "SELECT FROM user_tokens WHERE hash = $1", []byte("link"), reset("mine"), reset("theirs"))
	onlyOne(t, errs, tenants.ErrLinkEnded)
	want := "mine"
	if errs[0] != nil {
		want = "theirs"
	}
	if _, hash, err := b.Accounts.UserByEmail(t.Context(), b.user.Email); err != nil || hash != want {
		t.Errorf("the password is %q, want %q (%v)", hash, want, err)
	}
}
