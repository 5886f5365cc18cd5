package members

import (
	"errors"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// model is the page's data.
type model struct {
	Who     tenants.Principal
	Now     time.Time
	Rows    []row
	Pending []pending
	Done    string // the last action; "" if none

	TooSoon string            // how long to wait before resending the invitation; "" if it was sent
	Form    *formModel        // the form to invite people, or nil
	Invited []tenants.Invited // the people just invited
	Role    *roleModel        // the member whose role is to change, or nil
	Remove  *removeModel      // the member to remove, or nil
}

// row is a member in the table.
type row struct {
	Member    tenants.Member
	Cost      int64 // in the last 7 days, in millionths of a dollar
	IsYou     bool
	MayChange bool
	MayRemove bool
}

// pending is an invitation in the table.
type pending struct {
	tenants.Invitation

	Expired   bool
	MayChange bool
}

// formModel is the form to invite people.
type formModel struct{ Email, Role components.FieldModel }

// roleModel is the form to change a role.
type roleModel struct {
	Member tenants.Member
	Role   components.FieldModel
}

// removeModel is the question whether to remove a member.
type removeModel struct {
	Member        tenants.Member
	Confirm, Keys components.FieldModel
}

func newModel(who tenants.Principal, members []tenants.Member, invitations []tenants.Invitation, now time.Time) model {
	m := model{Who: who, Now: now}
	owners := 0
	for _, member := range members {
		if member.Role == tenants.Owner {
			owners++
		}
	}
	for _, member := range members {
		may := who.Role.Manages(member.Role) && tenants.CheckLeaving(member.Role, owners) == nil
		isYou := member.User.ID == who.User.ID
		m.Rows = append(m.Rows, row{Member: member, IsYou: isYou, MayChange: may, MayRemove: may && !isYou})
	}
	for _, invitation := range invitations {
		m.Pending = append(m.Pending, pending{
			Invitation: invitation, Expired: !invitation.ExpiresAt.After(now), MayChange: who.Role.Manages(invitation.Role),
		})
	}
	return m
}

// roles are the roles that a person with a role may give to others.
func roles(by tenants.Role) []components.Option {
	descriptions := map[tenants.Role]string{
		tenants.Owner: "everything", tenants.Admin: "all except billing and deletion", tenants.Regular: "own keys, all metrics, sessions",
		tenants.Viewer: "metrics, sessions without text", tenants.Billing: "metrics and invoices",
	}
	var options []components.Option
	for _, role := range tenants.Roles() {
		if by.Manages(role) {
			options = append(options, components.Option{Value: string(role), Label: components.RoleName(role) + ": " + descriptions[role]})
		}
	}
	return options
}

// newForm returns the form with the input and its errors.
func newForm(emails string, role tenants.Role, err error) *formModel {
	form := &formModel{
		Email: components.FieldModel{Label: "E-mail", Name: "email", Value: emails, Hint: "Separate several addresses by commas or spaces."},
		Role:  components.FieldModel{Label: "Role", Name: "role", Value: string(role)},
	}
	components.FieldErrors(err, &form.Email, &form.Role)
	return form
}

func newRole(member tenants.Member, role tenants.Role, err error) *roleModel {
	m := &roleModel{Member: member, Role: components.FieldModel{Label: "Role", Name: "role", Value: string(role)}}
	if errors.Is(err, tenants.ErrLastOwner) {
		m.Role.Error = "The workspace would have no owner. Make someone else an owner first."
	}
	components.FieldErrors(err, &m.Role)
	return m
}

// newRemove returns the question whether to remove a member; wrong is the input's error.
func newRemove(member tenants.Member, typed, keys, wrong string) *removeModel {
	return &removeModel{
		Member:  member,
		Confirm: components.FieldModel{Label: "Type " + member.User.Email + " to confirm", Name: "confirm", Value: typed, Error: wrong},
		Keys:    components.FieldModel{Label: "API keys that they created here", Name: "keys", Value: keys},
	}
}

// done confirms a change.
func done(what string) string {
	return map[string]string{
		"revoked": "The invitation is revoked. Its link no longer works.",
		"role":    "The role is changed. It applies from their next click.",
		"removed": "The member is removed. Their logins here have ended.",
	}[what]
}
