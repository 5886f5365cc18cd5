package members

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// CSV answers with the table of members as a file.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	members, err := h.people.Members(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	costs, err := h.costs(c.Request().Context(), who)
	if err != nil {
		return err
	}
	rows := [][]string{{"id", "email", "role", "joined_at", "last_seen_at", "cost_7d_micro_usd"}}
	for _, member := range members {
		rows = append(rows, []string{
			member.User.ID.String(), tenants.CSVCell(member.User.Email), string(member.Role), tenants.CSVTime(member.JoinedAt), tenants.CSVTime(member.SeenAt), strconv.FormatInt(costs[member.User.ID.String()], 10),
		})
	}
	return layout.CSV(c, "palimpsest-members.csv").WriteAll(rows)
}

// InvitationsCSV answers with the pending invitations as a file, without their links.
func (h *Handler) InvitationsCSV(c echo.Context, who tenants.Principal) error {
	pending, err := h.invitations.Pending(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	rows := [][]string{{"id", "email", "role", "invited_by", "sent_at", "expires_at"}}
	for _, invitation := range pending {
		rows = append(rows, []string{
			invitation.ID.String(), tenants.CSVCell(invitation.Email), string(invitation.Role), tenants.CSVCell(invitation.InvitedBy),
			tenants.CSVTime(invitation.SentAt), tenants.CSVTime(invitation.ExpiresAt),
		})
	}
	return layout.CSV(c, "palimpsest-invitations.csv").WriteAll(rows)
}
