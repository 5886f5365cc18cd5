package settings

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// ImportConfig applies a whole configuration file on behalf of by, or no part of it; a dry run only returns
// the changes. It returns pipeline.Faults for errors in the file, tenants.ErrDenied and tenants.ErrConflict.
type ImportConfig func(ctx context.Context, workspace tenants.WorkspaceID, document string, by uuid.UUID, may func(tenants.Permission) bool, dry bool) (tenants.ConfigImport, error)

// importModel is the page that imports a configuration file.
type importModel struct {
	Typed    string
	Faults   []components.Fault
	Came     tenants.ConfigImport
	IsAsked  bool // the changes are shown
	IsDone   bool // the changes were applied
	Conflict bool // someone saved in the meantime
}

func (m importModel) rows() string {
	return strconv.Itoa(min(24, max(10, strings.Count(m.Typed, "\n")+2)))
}

// AskImport shows the form for a configuration file.
func (h *Handler) AskImport(c echo.Context, who tenants.Principal) error {
	return answerImport(c, http.StatusOK, who, importModel{})
}

// Import shows a configuration file's changes and applies them after confirmation.
func (h *Handler) Import(c echo.Context, who tenants.Principal) error {
	typed, err := document(c)
	if err != nil {
		return err
	}
	page := importModel{Typed: typed}
	confirmed := c.FormValue("confirmed") != ""
	page.Came, err = h.deps.ImportConfig(c.Request().Context(), who.Workspace.ID, typed, who.User.ID, who.Role.May, !confirmed)
	if faults, is := errors.AsType[pipeline.Faults](err); is {
		page.Faults = components.FaultsOf(typed, faults)
		return answerImport(c, http.StatusUnprocessableEntity, who, page)
	}
	if errors.Is(err, tenants.ErrConflict) {
		page.Conflict = true
		return answerImport(c, http.StatusConflict, who, page)
	}
	if err != nil {
		return err
	}
	page.IsAsked, page.IsDone = !confirmed, confirmed
	return answerImport(c, http.StatusOK, who, page)
}

// document returns the uploaded file, or else the typed text.
func document(c echo.Context) (string, error) {
	typed := strings.ReplaceAll(c.FormValue("config"), "\r\n", "\n")
	sent, err := c.FormFile("file")
	switch {
	case errors.Is(err, http.ErrMissingFile), errors.Is(err, http.ErrNotMultipart):
		return typed, nil
	case err != nil:
		return "", echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	case sent.Size == 0:
		return typed, nil
	}
	file, err := sent.Open()
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	read, err := io.ReadAll(file)
	return strings.ToValidUTF8(string(read), "\uFFFD"), err
}

func answerImport(c echo.Context, status int, who tenants.Principal, page importModel) error {
	const title = "Import configuration"
	frame := layout.Frame{Title: title, Section: layout.Settings, Who: who, Breadcrumbs: []layout.Breadcrumb{{Title: "Settings", Path: paths.Settings}, {Title: title}}}
	return layout.Page(c, status, frame, importView(page))
}
