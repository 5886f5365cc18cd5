package manage

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Data is what workspaces say of themselves and their data.
type Data struct {
	DataStore
	Workspaces
	Views
}

// DataStore keeps what workspaces say of their data, and who may read it.
type DataStore interface {
	DataSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.DataSettings, error)

	// SetDataSettings returns tenants.Invalid for what cannot be set.
	SetDataSettings(ctx context.Context, workspace tenants.WorkspaceID, settings tenants.DataSettings) error

	// Reader returns what a person may read; nothing for who is no member.
	Reader(ctx context.Context, workspace, user uuid.UUID) (tenants.Reader, error)
}

// Workspaces says what a workspace is called and who belongs to it.
type Workspaces interface {
	// WorkspaceName returns what a workspace is called.
	WorkspaceName(ctx context.Context, workspace tenants.WorkspaceID) (string, error)

	// Members returns the people of a workspace.
	Members(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Member, error)
}

// Views keeps how people look at lists.
type Views interface {
	// EveryView returns the views of all people whose ids follow one, in order.
	EveryView(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) ([]tenants.View, error)
}

// reader returns what the caller may read of what was said. An API key reads what
// the person behind it may read now.
func (s *server) reader(c echo.Context, who caller) (tenants.Reader, error) {
	return s.Data.Reader(c.Request().Context(), who.workspace, who.person())
}

// textReader is reader for a route that answers nothing but what was said: it returns
// tenants.ErrTextDenied for a caller who may read nothing of it.
func (s *server) textReader(c echo.Context, who caller) (tenants.Reader, error) {
	reader, err := s.reader(c, who)
	if err == nil && reader.None() {
		err = tenants.ErrTextDenied
	}
	return reader, err
}

// settingsJSON are what a workspace says of its data.
type settingsJSON struct {
	TimeZone     string        `json:"time_zone"`
	ManagersRead tenants.Reads `json:"managers_read"`
	MembersRead  tenants.Reads `json:"members_read"`
	ViewersRead  tenants.Reads `json:"viewers_read"`
	NoStore      bool          `json:"no_store"`
}

func settingsOf(settings tenants.DataSettings) settingsJSON {
	return settingsJSON{
		TimeZone: settings.TimeZone, NoStore: settings.NoStore,
		ManagersRead: settings.Text.Managers, MembersRead: settings.Text.Members, ViewersRead: settings.Text.Viewers,
	}
}

func (s *server) getSettings(c echo.Context, who caller) error {
	settings, err := s.Data.DataSettings(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, settingsOf(settings))
}

// newSettings is what a request changes; what it leaves out stays.
type newSettings struct {
	TimeZone     *string        `json:"time_zone"`
	ManagersRead *tenants.Reads `json:"managers_read"`
	MembersRead  *tenants.Reads `json:"members_read"`
	ViewersRead  *tenants.Reads `json:"viewers_read"`
	NoStore      *bool          `json:"no_store"`
}

func (s *server) putSettings(c echo.Context, who caller) error {
	asked, err := readJSON[newSettings](c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	settings, err := s.Data.DataSettings(ctx, who.workspace)
	if err != nil {
		return err
	}
	settings = asked.apply(settings)
	if err := s.Data.SetDataSettings(ctx, who.workspace, settings); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, settingsOf(settings))
}

// apply returns settings as they are after the change.
func (n newSettings) apply(settings tenants.DataSettings) tenants.DataSettings {
	given(&settings.TimeZone, n.TimeZone)
	given(&settings.Text.Managers, n.ManagersRead)
	given(&settings.Text.Members, n.MembersRead)
	given(&settings.Text.Viewers, n.ViewersRead)
	given(&settings.NoStore, n.NoStore)
	return settings
}

// given sets what a request gives.
func given[V any](to, value *V) {
	if value != nil {
		*to = *value
	}
}
