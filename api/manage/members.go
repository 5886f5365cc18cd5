package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// memberHandler serves members and invitations of a workspace.
type memberHandler struct {
	members     tenants.Members
	invitations tenants.Invitations
}

func (h memberHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/members", a.as(tenants.ManageMembers, h.listMembers))
	group.POST("/members", a.as(tenants.ManageMembers, h.invite))
	group.PATCH("/members/:id", a.as(tenants.ManageMembers, withID(h.changeMember)))
	group.DELETE("/members/:id", a.as(tenants.ManageMembers, withID(h.removeMember)))

	group.GET("/invitations", a.as(tenants.ManageMembers, h.listInvitations))
	group.POST("/invitations", a.as(tenants.ManageMembers, h.invite))
	group.POST("/invitations/accept", a.asPerson(h.acceptInvitation))
	group.POST("/invitations/:id/resend", a.as(tenants.ManageMembers, withID(h.resendInvitation)))
	group.DELETE("/invitations/:id", a.as(tenants.ManageMembers, withID(h.revokeInvitation)))
}

type memberJSON struct {
	ID       uuid.UUID    `json:"id"`
	Email    string       `json:"email"`
	Role     tenants.Role `json:"role"`
	JoinedAt time.Time    `json:"joined_at"`
	SeenAt   *time.Time   `json:"seen_at"` // null until then
}

type invitationJSON struct {
	ID        uuid.UUID    `json:"id"`
	Email     string       `json:"email"`
	Role      tenants.Role `json:"role"`
	InvitedBy string       `json:"invited_by,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	SentAt    time.Time    `json:"sent_at"`
	ExpiresAt time.Time    `json:"expires_at"`
	Link      string       `json:"link,omitempty"` // only in the answer that created it
}

func invitationOf(invitation tenants.Invitation, link string) invitationJSON {
	return invitationJSON{
		ID: invitation.ID, Email: invitation.Email, Role: invitation.Role, InvitedBy: invitation.InvitedBy,
		CreatedAt: invitation.CreatedAt, SentAt: invitation.SentAt, ExpiresAt: invitation.ExpiresAt, Link: link,
	}
}

// pendingOf is invitationOf without the link, since only the invited person knows it.
func pendingOf(invitation tenants.Invitation) invitationJSON { return invitationOf(invitation, "") }

func (h memberHandler) listMembers(c echo.Context, who caller) error {
	members, err := h.members.Members(c.Request().Context(), who.workspace)
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

func (h memberHandler) changeMember(c echo.Context, who caller, id uuid.UUID) error {
	asked, err := readJSON[struct {
		Role tenants.Role `json:"role"`
	}](c)
	if err != nil {
		return err
	}
	return done(c, h.members.ChangeRole(c.Request().Context(), who.workspace, id, asked.Role))
}

func (h memberHandler) removeMember(c echo.Context, who caller, id uuid.UUID) error {
	revoke, err := revokesKeys(c)
	if err != nil {
		return err
	}
	return done(c, h.members.RemoveMember(c.Request().Context(), who.workspace, id, revoke))
}

func (h memberHandler) listInvitations(c echo.Context, who caller) error {
	pending, err := h.invitations.Pending(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return answerPage(c, each(pending, pendingOf), "")
}

// invite invites one person. Posting a member does the same, since a person has to accept to become a member.
func (h memberHandler) invite(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Email string       `json:"email"`
		Role  tenants.Role `json:"role"`
	}](c)
	if err != nil {
		return err
	}
	invited, err := h.invitations.Invite(c.Request().Context(), who.workspace, []string{asked.Email}, asked.Role)
	if err != nil {
		return err
	}
	return answerInvited(c, http.StatusCreated, invited[0])
}

func (h memberHandler) resendInvitation(c echo.Context, who caller, id uuid.UUID) error {
	invited, err := h.invitations.Resend(c.Request().Context(), who.workspace, id)
	if err != nil {
		return err
	}
	return answerInvited(c, http.StatusOK, invited)
}

func (h memberHandler) revokeInvitation(c echo.Context, who caller, id uuid.UUID) error {
	return done(c, h.invitations.Revoke(c.Request().Context(), who.workspace, id))
}

func (h memberHandler) acceptInvitation(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Token string `json:"token"`
	}](c)
	if err != nil {
		return err
	}
	return done(c, h.invitations.Accept(c.Request().Context(), asked.Token, who.principal))
}

// answerInvited answers with an invitation and its link, which can't be read again.
func answerInvited(c echo.Context, status int, invited tenants.Invited) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(status, invitationOf(invited.Invitation, invited.Link))
}
