package manage

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

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
	group.PUT("/retention", a.as(tenants.ManageSettings, h.putRetention))
	group.GET("/settings", a.as(tenants.ReadConfig, h.getSettings))
	group.PUT("/settings", a.as(tenants.ManageSettings, h.putSettings))
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

func (h dataHandler) putSettings(c echo.Context, who caller) error {
	asked, err := readJSON[newSettings](c)
	if err != nil {
		return err
	}
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
