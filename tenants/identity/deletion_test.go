package identity_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// S13, S31: people who log in with a passkey or through single sign-on have no password to
// delete their account with.
func TestAccountWithoutPasswordIsDeletedAfterRecentLogin(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	elsewhere, _ := b.signUp(t, "elsewhere@example.com")
	for name, test := range map[string]struct {
		age      time.Duration
		signOn   tenants.WorkspaceID // that opened the login
		both     bool                // the person belongs to another workspace too
		has      bool                // a password
		password string              // that they type
		want     func(error) bool
	}{
		"recent":                           {age: 15 * time.Minute, want: isNil},
		"old":                              {age: 15*time.Minute + time.Second, want: namesPassword},
		"recent, with a password":          {has: true, want: namesPassword},
		"recent, with a wrong password":    {has: true, password: "not mine", want: namesPassword},
		"recent sign-on":                   {signOn: b.owner.Workspace.ID, want: isNil},
		"old sign-on":                      {age: time.Hour, signOn: b.owner.Workspace.ID, want: namesPassword},
		"recent sign-on of one of two":     {signOn: b.owner.Workspace.ID, both: true, want: isSignOnOnly},
		"sign-on of one of two, password":  {signOn: b.owner.Workspace.ID, both: true, has: true, password: password, want: isSignOnOnly},
		"recent sign-on of another":        {signOn: elsewhere.Workspace.ID, want: isSignOnOnly},
		"old, with the password":           {age: time.Hour, has: true, password: password, want: isNil},
		"old sign-on, with a set password": {age: time.Hour, signOn: b.owner.Workspace.ID, has: true, password: password, want: isNil},
	} {
		who, _ := b.signUp(t, uuid.NewString()+"@example.com")
		b.exec(t, "DELETE FROM logins WHERE user_id = $1", who.User.ID)
		b.exec(t, "UPDATE members SET role = 'member', workspace_id = $2 WHERE user_id = $1", who.User.ID, b.owner.Workspace.ID)
		if !test.has {
			b.exec(t, "UPDATE users SET password_hash = '' WHERE id = $1", who.User.ID)
		}
		if test.both {
			b.exec(t, "INSERT INTO members (user_id, workspace_id, role) VALUES ($1, $2, 'member')", who.User.ID, elsewhere.Workspace.ID)
		}
		who.Login.SignOn, who.Login.CreatedAt = test.signOn, b.clock.Now().Add(-test.age)

		err := b.service.DeleteAccount(b.ctx, who, test.password, true)

		if !test.want(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, found := b.DB.Accounts.UserByEmail(t.Context(), who.User.Email); (found == nil) != (err != nil) {
			t.Errorf("%s: %v, and the account: %v", name, err, found)
		}
	}
}

func (b *bundle) exec(t *testing.T, statement string, values ...any) {
	t.Helper()
	if _, err := b.Owner(t).Exec(t.Context(), statement, values...); err != nil {
		t.Fatal(err)
	}
}

func isNil(err error) bool { return err == nil }

func isSignOnOnly(err error) bool { return errors.Is(err, tenants.ErrSignOnOnly) }

func namesPassword(err error) bool {
	var invalid tenants.Invalid
	return errors.As(err, &invalid) && invalid.Field == "password"
}
