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
	group.POST("/members", a.as(tenants.ManageMembers, withBody(h.invite)))
	group.PATCH("/members/:id", a.as(tenants.ManageMembers, withID(h.changeMember)))
	group.DELETE("/members/:id", a.as(tenants.ManageMembers, withID(h.removeMember)))

	group.GET("/invitations", a.as(tenants.ManageMembers, h.listInvitations))
	group.POST("/invitations", a.as(tenants.ManageMembers, withBody(h.invite)))
	group.POST("/invitations/accept", a.asPerson(withBody(h.acceptInvitation)))
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
func (h memberHandler) invite(c echo.Context, who caller, asked struct {
	Email string       `json:"email"`
	Role  tenants.Role `json:"role"`
}) error {
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

func (h memberHandler) acceptInvitation(c echo.Context, who caller, asked struct {
	Token string `json:"token"`
}) error {
	return done(c, h.invitations.Accept(c.Request().Context(), asked.Token, who.principal))
}

// answerInvited answers with an invitation and its link, which can't be read again.
func answerInvited(c echo.Context, status int, invited tenants.Invited) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(status, invitationOf(invited.Invitation, invited.Link))
}

// readers finds out which messages callers may read.
type readers struct {
	data tenants.Data
}

// dataHandler serves a workspace's data settings.
type dataHandler struct {
	data tenants.Data
}

func (h dataHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/retention", a.as(tenants.ReadConfig, h.getRetention))
	group.PUT("/retention", a.as(tenants.ManageSettings, withBody(h.putRetention)))
	group.GET("/settings", a.as(tenants.ReadConfig, h.getSettings))
	group.PUT("/settings", a.as(tenants.ManageSettings, withBody(h.putSettings)))
	group.GET("/redaction", a.as(tenants.ReadConfig, h.getRedaction))
}

// reader returns the caller's rights to read messages.
func (r readers) reader(c echo.Context, who caller) (tenants.Reader, error) {
	if who.isKey() {
		return r.data.KeyReader(c.Request().Context(), who.key)
	}
	return r.data.Reader(c.Request().Context(), who.workspace, who.person())
}

// textReader is reader for a route that only serves messages: it returns tenants.ErrTextDenied for a caller
// without any right to read them.
func (r readers) textReader(c echo.Context, who caller) (tenants.Reader, error) {
	reader, err := r.reader(c, who)
	if err == nil && reader.None() {
		err = tenants.ErrTextDenied
	}
	return reader, err
}

// settingsJSON holds a workspace's data settings.
type settingsJSON struct {
	TimeZone     string        `json:"time_zone"`
	ManagersRead tenants.Reads `json:"managers_read"`
	MembersRead  tenants.Reads `json:"members_read"`
	ViewersRead  tenants.Reads `json:"viewers_read"`
	NoStore      bool          `json:"no_store"`

	Redact      []tenants.RedactionKind `json:"redact"`
	RedactNames []string                `json:"redact_names"`

	EndUsers tenants.EndUserIDs `json:"end_users"`
	Origins  []string           `json:"browser_origins"`
	Failover tenants.Failover   `json:"failover"`

	OwnCredentials bool `json:"own_credentials"`
}

func settingsOf(settings tenants.DataSettings) settingsJSON {
	return settingsJSON{
		TimeZone: settings.TimeZone, NoStore: settings.NoStore,
		Redact: list(settings.Redact.Kinds), RedactNames: list(settings.Redact.Names), EndUsers: settings.EndUsers, Origins: list(settings.Origins), Failover: settings.Failover, OwnCredentials: settings.OwnCredentials,
		ManagersRead: settings.Text.Managers, MembersRead: settings.Text.Members, ViewersRead: settings.Text.Viewers,
	}
}

func (h dataHandler) getSettings(c echo.Context, who caller) error {
	settings, err := h.data.DataSettings(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, settingsOf(settings))
}

// newSettings is a request's change of settings; omitted members stay.
type newSettings struct {
	TimeZone     *string        `json:"time_zone"`
	ManagersRead *tenants.Reads `json:"managers_read"`
	MembersRead  *tenants.Reads `json:"members_read"`
	ViewersRead  *tenants.Reads `json:"viewers_read"`
	NoStore      *bool          `json:"no_store"`

	Redact      *[]tenants.RedactionKind `json:"redact"`
	RedactNames *[]string                `json:"redact_names"`

	EndUsers *tenants.EndUserIDs `json:"end_users"`
	Origins  *[]string           `json:"browser_origins"`
	Failover *tenants.Failover   `json:"failover"`

	OwnCredentials *bool `json:"own_credentials"`
}

func (h dataHandler) putSettings(c echo.Context, who caller, asked newSettings) error {
	ctx := c.Request().Context()
	settings, err := h.data.DataSettings(ctx, who.workspace)
	if err != nil {
		return err
	}
	settings = asked.apply(settings)
	if err := h.data.SetDataSettings(ctx, who.workspace, settings); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, settingsOf(settings.Normal()))
}

// apply returns the changed settings.
func (n newSettings) apply(settings tenants.DataSettings) tenants.DataSettings {
	set(&settings.TimeZone, n.TimeZone)
	set(&settings.Text.Managers, n.ManagersRead)
	set(&settings.Text.Members, n.MembersRead)
	set(&settings.Text.Viewers, n.ViewersRead)
	set(&settings.NoStore, n.NoStore)
	set(&settings.Redact.Kinds, n.Redact)
	set(&settings.Redact.Names, n.RedactNames)
	set(&settings.EndUsers, n.EndUsers)
	set(&settings.Failover, n.Failover)
	set(&settings.OwnCredentials, n.OwnCredentials)
	if n.Origins != nil {
		settings.Origins = *n.Origins
	}
	return settings
}

// redactionJSON counts replacements of one kind of personal data.
type redactionJSON struct {
	Kind  tenants.RedactionKind `json:"kind"`
	Found int64                 `json:"found"`
}

func (h dataHandler) getRedaction(c echo.Context, who caller) error {
	counts, err := h.data.RedactionCounts(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]redactionJSON{"data": each(counts, func(count tenants.RedactionCount) redactionJSON {
		return redactionJSON(count)
	})})
}

type retentionJSON struct {
	Days int `json:"days"` // 0 means forever
}

func (h dataHandler) getRetention(c echo.Context, who caller) error {
	retention, err := h.data.Retention(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, retentionJSON{Days: retention.Days})
}

// newRetention is the body of a request to set the retention. An omitted value is not taken for 0.
type newRetention struct {
	Days *int `json:"days"`
}

func (h dataHandler) putRetention(c echo.Context, who caller, asked newRetention) error {
	if asked.Days == nil {
		return tenants.Invalid{Field: "days", Message: "is missing; 0 keeps sessions for ever"}
	}
	retention := tenants.Retention{Days: *asked.Days}
	if err := h.data.SetRetention(c.Request().Context(), who.workspace, retention); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, retentionJSON{Days: retention.Days})
}
