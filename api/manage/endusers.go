package manage

import (
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// endUserHandler deletes data of the end users of applications.
type endUserHandler struct {
	sessions session.Records
	audit    tenants.AuditLog
	now      func() time.Time
}

func (h endUserHandler) register(group *echo.Group, a *authorizer) {
	group.DELETE("/users/:id", a.as(tenants.DeleteSessions, h.eraseUser))
}

// erasedJSON lists the deleted data of an end user.
type erasedJSON struct {
	EndUser  string `json:"end_user"`
	Sessions int64  `json:"sessions"`
	Requests int64  `json:"requests"`
	Answers  int64  `json:"answers"`
	Patterns int64  `json:"patterns"`
}

// eraseUser deletes the data of an end user. A repeated call deletes data that arrived since.
func (h endUserHandler) eraseUser(c echo.Context, who caller) error {
	id, err := url.PathUnescape(c.Param("id"))
	if err != nil || id == "" {
		return tenants.Invalid{Field: "id", Message: "must be the id of an end user, as the application sends it or as end_user has it, with %2F for a slash"}
	}
	users := session.EndUserIDs(who.workspace, id)
	erased, err := session.EraseAll(c.Request().Context(), h.sessions, who.workspace, users, h.now(), h.audit.Together, func(tenant tenants.Tenant, user string, part session.Erased) error {
		return h.audit.Note(c.Request().Context(), tenant, tenants.Change{Action: tenants.EndUserErased, Target: user, After: part.Counts()})
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, erasedJSON{
		EndUser: users[0], Sessions: erased.Sessions, Requests: erased.Requests, Answers: erased.Answers, Patterns: erased.Patterns,
	})
}
