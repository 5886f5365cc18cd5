package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// errCrossOrigin is the error for a request from another site's page.
var errCrossOrigin = errors.New("request comes from another site")

// bucketRetry is the Retry-After, in seconds, while the bucket is down.
const bucketRetry = "30"

// databaseRetry is the Retry-After, in seconds, while the database is down.
const databaseRetry = "5"

// problem is the content of an error page.
type problem struct {
	status int
	title  string
	text   string // the cause, the parts that still work, and the next step
}

// problemOf maps an error to its page.
func problemOf(err error) problem {
	var http4xx *echo.HTTPError
	var suspended tenants.Suspended
	switch {
	case errors.Is(err, tenants.ErrNotFound), errors.Is(err, session.ErrNotFound), errors.Is(err, archive.ErrNotFound):
		return problem{http.StatusNotFound, "Page not found", "This address does not exist in this workspace, or you may not see it. It may have been removed."}
	case errors.Is(err, archive.ErrAway):
		return problem{http.StatusServiceUnavailable, "The bucket does not answer",
			"It stores the originals for this page. They are not lost, and the proxy keeps working. Try again in " + bucketRetry + " seconds."}
	case errors.Is(err, tenants.ErrAway):
		return problem{http.StatusServiceUnavailable, "The database does not answer", "The proxy keeps working. Try again in " + databaseRetry + " seconds."}
	case errors.Is(err, session.ErrCursor):
		return problem{http.StatusBadRequest, "This page of the list does not exist", "The address was changed or is out of date. Start at the first page of the list."}
	case errors.As(err, &suspended):
		return problem{http.StatusForbidden, "This workspace is suspended",
			"The reason: " + suspended.Reason + ". Its API keys are refused, but its data is kept. Ask the person who runs this installation. Your account and your other workspaces work."}
	case errors.Is(err, tenants.ErrDenied):
		return problem{http.StatusForbidden, "Your role doesn’t allow this", "No change was made. Ask an owner of the workspace to do it."}
	case errors.Is(err, tenants.ErrLogInAgain):
		return problem{http.StatusForbidden, "Log in again for this", "No change was made. Log out, log in, and repeat it within 15 minutes."}
	case errors.Is(err, tenants.ErrSignOnOnly):
		return problem{http.StatusForbidden, "This login opens one workspace only", "No change was made, because you used that workspace’s single sign-on. Log out, and log in with your password or a passkey."}
	case errors.Is(err, tenants.ErrTooMany):
		return problem{http.StatusTooManyRequests, "Too many connections are open", "No change was made. Close other tabs of this dashboard, or wait a moment, and open the page again."}
	case errors.Is(err, tenants.ErrLastOwner):
		return problem{http.StatusConflict, "The workspace would have no owner", "No change was made. Make someone else an owner first."}
	case errors.Is(err, tenants.ErrTextDenied):
		return problem{http.StatusForbidden, "You may not read this", "The workspace does not let you read this conversation. You can see its figures."}
	case errors.Is(err, errCrossOrigin):
		return problem{http.StatusForbidden, "This request came from another site", "No change was made. Open the page here and send the form again."}
	case errors.As(err, &http4xx) && http4xx.Code < http.StatusInternalServerError:
		return notTaken(http4xx.Code)
	default:
		return problem{http.StatusInternalServerError, "This did not load", "The proxy keeps working. Try again in a moment."}
	}
}

// notTaken returns the error page for a request that no handler took.
func notTaken(status int) problem {
	switch status {
	case http.StatusNotFound:
		return problem{status, "Page not found", "This address does not exist. Check that you copied all of it."}
	case http.StatusRequestEntityTooLarge:
		return problem{status, "The form is too large", "No change was made. Send less at once."}
	case http.StatusRequestTimeout:
		return problem{status, "The form came too slowly", "No change was made. Send it again over a better connection."}
	default:
		return problem{status, "This request could not be understood", "No change was made. Open the page again and retry."}
	}
}

// supportedAPIs points programs at the API addresses after they asked for an unknown one.
const supportedAPIs = "Clients of models use /v1/messages, /v1/chat/completions or /v1/responses; the product's own API is below /api/v1."

// isProgram reports whether a request comes from an API client: it sends or accepts JSON but does not accept
// HTML, and is not from htmx.
func isProgram(request *http.Request) bool {
	accept := request.Header.Get("Accept")
	isJSON := strings.HasPrefix(request.Header.Get("Content-Type"), echo.MIMEApplicationJSON) || strings.Contains(accept, echo.MIMEApplicationJSON)
	return isJSON && !strings.Contains(accept, "text/html") && request.Header.Get("Hx-Request") == ""
}

// errors turns a handler's error into a page. Only the log gets the cause, under the reference that the page
// shows.
func (s *Server) errors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if err == nil || c.Response().Committed {
			return err
		}
		found := problemOf(err)
		if errors.Is(err, tenants.ErrSuspended) && s.config.Contact != "" {
			found.text += " The contact is " + s.config.Contact + "."
		}
		switch {
		case errors.Is(err, tenants.ErrDenied) && c.Request().Method == http.MethodGet:
			found.text = "An owner of the workspace can show you this page, or give you another role."
		case errors.Is(err, archive.ErrAway):
			c.Response().Header().Set(echo.HeaderRetryAfter, bucketRetry)
		case errors.Is(err, tenants.ErrAway):
			c.Response().Header().Set(echo.HeaderRetryAfter, databaseRetry)
		}
		reference := ""
		if found.status >= http.StatusInternalServerError {
			reference = strings.Split(uuid.NewString(), "-")[0]
			s.config.Log.ErrorContext(c.Request().Context(), "page failed", "path", c.Path(), "reference", reference, "error", err)
		}
		content := problemPage(found, reference)
		if found.status == http.StatusNotFound && isProgram(c.Request()) {
			return c.JSON(found.status, map[string]any{"error": map[string]string{"type": "not_found_error", "message": "There is no such address here. " + supportedAPIs}})
		}
		if layout.IsPartial(c) {
			return layout.Fragment(c, found.status, problemPart(found, reference))
		}
		who, err := s.principal(c)
		if err != nil || who.Workspace.ID.IsZero() {
			return layout.Plain(c, found.status, found.title, content)
		}
		return layout.Page(c, found.status, layout.Frame{Title: found.title, Who: who}, content)
	}
}
