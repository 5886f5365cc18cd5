// Package members is the page of a workspace's members and invitations.
package members

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the page's requests.
type Handler struct {
	people      tenants.Members
	invitations tenants.Invitations
	usage       tenants.UsageReader
	now         func() time.Time
}

// New returns a Handler.
func New(people tenants.Members, invitations tenants.Invitations, usage tenants.UsageReader, now func() time.Time) *Handler {
	return &Handler{people: people, invitations: invitations, usage: usage, now: now}
}

// List shows members and invitations.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(*model) {})
}

// New shows the form to invite people.
func (h *Handler) New(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Form = newForm("", tenants.Regular, nil) })
}

// Invite invites the people at the typed addresses and shows their links, once.
func (h *Handler) Invite(c echo.Context, who tenants.Principal) error {
	typed, role := c.FormValue("email"), tenants.Role(c.FormValue("role"))
	emails := strings.FieldsFunc(typed, func(letter rune) bool { return unicode.IsSpace(letter) || letter == ',' || letter == ';' })
	invited, err := h.invitations.Invite(c.Request().Context(), who.Workspace.ID, emails, role)
	if _, mendable := errors.AsType[tenants.Invalid](err); mendable {
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Form = newForm(typed, role, err) })
	}
	if many, tooMany := errors.AsType[tenants.TooMany](err); tooMany {
		tellWait(c, many)
		return h.page(c, who, http.StatusTooManyRequests, func(m *model) {
			m.Form = newForm(typed, role, nil)
			m.Form.Email.Error = "Too many " + many.What + ". Try again in " + components.Span(many.Wait) + "."
		})
	}
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusCreated, func(m *model) { m.Invited = invited })
}

// Resend resends an invitation and shows its new link, once.
func (h *Handler) Resend(c echo.Context, who tenants.Principal) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	invited, err := h.invitations.Resend(c.Request().Context(), who.Workspace.ID, id)
	if wait, tooMany := errors.AsType[tenants.TooMany](err); tooMany {
		tellWait(c, wait)
		return h.page(c, who, http.StatusTooManyRequests, func(m *model) { m.TooSoon = components.Span(wait.Wait) })
	}
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Invited = []tenants.Invited{invited} })
}

// tellWait returns how long to wait.
func tellWait(c echo.Context, many tenants.TooMany) {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(many.Wait.Seconds())+1))
}

// Revoke revokes an invitation.
func (h *Handler) Revoke(c echo.Context, who tenants.Principal) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	if err := h.invitations.Revoke(c.Request().Context(), who.Workspace.ID, id); err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Members, "done", "revoked"))
}

// AskRole shows the form to change a member's role.
func (h *Handler) AskRole(c echo.Context, who tenants.Principal) error {
	return h.aboutMember(c, who, func(member tenants.Member) error {
		return h.page(c, who, http.StatusOK, func(m *model) { m.Role = newRole(member, member.Role, nil) })
	})
}

// ChangeRole changes a member's role.
func (h *Handler) ChangeRole(c echo.Context, who tenants.Principal) error {
	return h.aboutMember(c, who, func(member tenants.Member) error {
		role := tenants.Role(c.FormValue("role"))
		err := h.people.ChangeRole(c.Request().Context(), who.Workspace.ID, member.User.ID, role)
		_, mendable := errors.AsType[tenants.Invalid](err)
		switch {
		case mendable || errors.Is(err, tenants.ErrLastOwner):
			return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Role = newRole(member, role, err) })
		case err != nil:
			return err
		case member.User.ID == who.User.ID: // they may no longer see this page
			return layout.Redirect(c, paths.Workspaces)
		}
		return layout.Redirect(c, paths.With(paths.Members, "done", "role"))
	})
}

// ConfirmRemove asks whether to remove a member.
func (h *Handler) ConfirmRemove(c echo.Context, who tenants.Principal) error {
	return h.aboutMember(c, who, func(member tenants.Member) error {
		return h.page(c, who, http.StatusOK, func(m *model) { m.Remove = newRemove(member, "", "", "") })
	})
}

// Remove removes a member after their address was typed.
func (h *Handler) Remove(c echo.Context, who tenants.Principal) error {
	return h.aboutMember(c, who, func(member tenants.Member) error {
		typed, keys := strings.TrimSpace(c.FormValue("confirm")), c.FormValue("keys")
		if !strings.EqualFold(typed, member.User.Email) {
			wrong := "That is not their address. Type " + member.User.Email + "."
			return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Remove = newRemove(member, typed, keys, wrong) })
		}
		err := h.people.RemoveMember(c.Request().Context(), who.Workspace.ID, member.User.ID, keys != components.KeepKeys)
		if err != nil {
			return err
		}
		return layout.Redirect(c, paths.With(paths.Members, "done", "removed"))
	})
}

// aboutMember handles a request about the path's member, whom the person must be allowed to manage.
func (h *Handler) aboutMember(c echo.Context, who tenants.Principal, handle func(tenants.Member) error) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	members, err := h.people.Members(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	for _, member := range members {
		if member.User.ID == id {
			if !who.Role.Manages(member.Role) {
				return tenants.ErrDenied
			}
			return handle(member)
		}
	}
	return tenants.ErrNotFound
}

// page shows the page after applying change.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	ctx := c.Request().Context()
	members, err := h.people.Members(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	pending, err := h.invitations.Pending(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	costs, err := h.costs(ctx, who)
	if err != nil {
		return err
	}
	page := newModel(who, members, pending, h.now())
	for i := range page.Rows {
		page.Rows[i].Cost = costs[page.Rows[i].Member.User.ID.String()]
	}
	page.Done = done(c.QueryParam("done"))
	change(&page)
	return layout.Page(c, status, layout.Frame{Title: "Members", Section: layout.Members, Who: who}, view(page))
}

// costSpan is the span of the members' costs.
const costSpan = 7 * 24 * time.Hour

// costs returns the members' costs, in millionths of a dollar, by their ids.
func (h *Handler) costs(ctx context.Context, who tenants.Principal) (map[string]int64, error) {
	now := h.now()
	filter := tenants.UsageFilter{From: now.Add(-costSpan), To: now}.SeenBy(who.User.ID, who.Role.May)
	rows, err := h.usage.Usage(ctx, who.Workspace.ID, tenants.ByMember, filter)
	costs := make(map[string]int64, len(rows))
	for i := range rows {
		costs[rows[i].Label] = rows[i].CostMicroUSD
	}
	return costs, err
}

func pathID(c echo.Context) (uuid.UUID, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.Nil, tenants.ErrNotFound
	}
	return id, nil
}

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
