package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Invitations asks people into workspaces, and lets them in.
type Invitations interface {
	// Invite invites all or none. What a script can mend is a tenants.Invalid;
	// tenants.ErrDenied says that the caller does not manage the role.
	Invite(ctx context.Context, workspace tenants.WorkspaceID, emails []string, role tenants.Role) ([]tenants.Invited, error)

	// Resend and Revoke return tenants.ErrNotFound and tenants.ErrDenied; Resend also
	// a tenants.TooMany.
	Resend(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.Invited, error)
	Revoke(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error

	Pending(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Invitation, error)

	// Accept returns tenants.ErrInvitation and tenants.ErrOtherAddress.
	Accept(ctx context.Context, secret string, who tenants.Principal) error
}

type memberJSON struct {
	ID       uuid.UUID    `json:"id"`
	Email    string       `json:"email"`
	Role     tenants.Role `json:"role"`
	JoinedAt time.Time    `json:"joined_at"`
	SeenAt   *time.Time   `json:"seen_at"` // null: not yet
}

type invitationJSON struct {
	ID        uuid.UUID    `json:"id"`
	Email     string       `json:"email"`
	Role      tenants.Role `json:"role"`
	InvitedBy string       `json:"invited_by,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	SentAt    time.Time    `json:"sent_at"`
	ExpiresAt time.Time    `json:"expires_at"`
	Link      string       `json:"link,omitempty"` // in the answer that made it only
}

func invitationOf(invitation tenants.Invitation, link string) invitationJSON {
	return invitationJSON{
		ID: invitation.ID, Email: invitation.Email, Role: invitation.Role, InvitedBy: invitation.InvitedBy,
		CreatedAt: invitation.CreatedAt, SentAt: invitation.SentAt, ExpiresAt: invitation.ExpiresAt, Link: link,
	}
}

func (s *server) listMembers(c echo.Context, who caller) error {
	members, err := s.People.Members(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	data := make([]memberJSON, len(members))
	for i, member := range members {
		data[i] = memberJSON{ID: member.User.ID, Email: member.User.Email, Role: member.Role, JoinedAt: member.JoinedAt}
		if !member.SeenAt.IsZero() {
			data[i].SeenAt = &member.SeenAt
		}
	}
	return answerPage(c, data, "")
}

func (s *server) changeMember(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	asked, err := readJSON[struct {
		Role tenants.Role `json:"role"`
	}](c)
	if err != nil {
		return err
	}
	if err := s.People.ChangeRole(c.Request().Context(), who.workspace, id, asked.Role); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *server) removeMember(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	revoke, err := revokesKeys(c)
	if err != nil {
		return err
	}
	if err := s.People.RemoveMember(c.Request().Context(), who.workspace, id, revoke); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *server) listInvitations(c echo.Context, who caller) error {
	pending, err := s.Invitations.Pending(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	data := make([]invitationJSON, len(pending))
	for i, invitation := range pending {
		data[i] = invitationOf(invitation, "")
	}
	return answerPage(c, data, "")
}

// invite invites one person. Nobody becomes a member without accepting, so that this
// is what posting a member does, too.
func (s *server) invite(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Email string       `json:"email"`
		Role  tenants.Role `json:"role"`
	}](c)
	if err != nil {
		return err
	}
	invited, err := s.Invitations.Invite(c.Request().Context(), who.workspace, []string{asked.Email}, asked.Role)
	if err != nil {
		return err
	}
	return answerInvited(c, http.StatusCreated, invited[0])
}

func (s *server) resendInvitation(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	invited, err := s.Invitations.Resend(c.Request().Context(), who.workspace, id)
	if err != nil {
		return err
	}
	return answerInvited(c, http.StatusOK, invited)
}

func (s *server) revokeInvitation(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	if err := s.Invitations.Revoke(c.Request().Context(), who.workspace, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *server) acceptInvitation(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Token string `json:"token"`
	}](c)
	if err != nil {
		return err
	}
	if err := s.Invitations.Accept(c.Request().Context(), asked.Token, who.principal); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// answerInvited answers with an invitation and its link, which nobody can read again.
func answerInvited(c echo.Context, status int, invited tenants.Invited) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(status, invitationOf(invited.Invitation, invited.Link))
}
