package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// Errors of a request that the API itself finds.
var (
	errNoLogin      = errors.New("no API key and no login")
	errWrongCode    = errors.New("code is wrong")
	errUnknownRoute = errors.New("no such route")
	errNoWorkspace  = errors.New("the login works in no workspace")
	errNoPerson     = errors.New("no one is logged in")
	errNoKey        = errors.New("for people only")
	errCrossOrigin  = errors.New("request comes from another site")
	errTooLarge     = errors.New("request body is too large")
	errSlow         = errors.New("request body came too slowly")
	errNotJSON      = errors.New("content type is not JSON")
	errNoAccount    = errors.New("an API key has no account")
	errSubscribed   = errors.New("a subscription runs")
	errNotForm      = errors.New("content type is not that of a form")
	errNoAPIKey     = errors.New("no API key was sent")
	errNotConfig    = errors.New("content type is neither YAML nor JSON")
)

// malformed is an unreadable body or query. Its message is for the sender.
type malformed struct{ message string }

func (e malformed) Error() string { return e.message }

// bucketRetry is the Retry-After value, in seconds, for requests that need a bucket that is down.
const bucketRetry = 30

// databaseRetry is the same for a database that is down.
const databaseRetry = 5

// statusClientGone is the status logged for a client that left before its answer.
const statusClientGone = 499

// problem is the body of an error: RFC 9457.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Field     string `json:"field,omitempty"` // path of the faulty value
	RequestID string `json:"request_id,omitempty"`

	// For a faulty document: the line of the first fault, and all of them.
	Line   int         `json:"line,omitempty"`
	Errors []faultJSON `json:"errors,omitempty"`

	retryAfter int // seconds; 0 omits it
}

// faultJSON is one of several faults of a document.
type faultJSON struct {
	Field   string `json:"field,omitempty"`
	Line    int    `json:"line,omitempty"` // from 1
	Message string `json:"message"`
}

// problems answers the errors of handlers as application/problem+json.
func (a *authorizer) problems(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if err == nil || c.Response().Committed {
			return err
		}
		answer := problemOf(err)
		answer.Type, answer.Title = "about:blank", http.StatusText(answer.Status)
		answer.RequestID = c.Response().Header().Get(echo.HeaderXRequestID)
		if answer.RequestID == "" {
			answer.RequestID = uuid.Must(uuid.NewV7()).String()
		}
		if answer.Status >= http.StatusInternalServerError {
			a.log.ErrorContext(c.Request().Context(), "product API failed", "request_id", answer.RequestID,
				"method", c.Request().Method, "route", c.Path(), "error", err)
		}
		if answer.retryAfter > 0 {
			c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(answer.retryAfter))
		}
		if answer.Status == http.StatusUnauthorized {
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="palimpsest"`)
		}
		c.Response().Header().Set(echo.HeaderContentType, "application/problem+json")
		return c.JSON(answer.Status, answer)
	}
}

// problemOf maps the kind of an error to the answer. The error's text stays in the log unless people can act
// on it.
func problemOf(err error) problem {
	var bad malformed
	var refused *echo.HTTPError
	if faults, is := errors.AsType[pipeline.Faults](err); is {
		return faultsProblem(faults)
	}
	if field, message, ok := invalid(err); ok {
		return problem{Status: http.StatusUnprocessableEntity, Field: field, Detail: message}
	}
	if many, is := errors.AsType[tenants.TooMany](err); is {
		wait := max(1, int(math.Ceil(many.Wait.Seconds())))
		return problem{
			Status: http.StatusTooManyRequests, retryAfter: wait,
			Detail: fmt.Sprintf("Too many %s. Try again in %d seconds.", cmp.Or(many.What, "attempts"), wait),
		}
	}
	if forbidden, is := errors.AsType[tenants.Forbidden](err); is {
		return problem{Status: http.StatusForbidden, Detail: forbidden.Message}
	}
	for _, known := range known() {
		if errors.Is(err, known.kind) {
			return problem{Status: known.status, Detail: known.detail, Field: known.field, retryAfter: known.retryAfter}
		}
	}
	switch {
	case errors.As(err, &bad):
		return problem{Status: http.StatusBadRequest, Detail: bad.message}
	case errors.As(err, &refused) && refused.Code < http.StatusInternalServerError:
		return problem{Status: refused.Code, Detail: http.StatusText(refused.Code) + "."}
	default:
		return problem{Status: http.StatusInternalServerError, Detail: "The request failed on our side. Nothing was changed; try again, and name the request_id if it goes on."}
	}
}

// faultsProblem lists all faults of a document.
func faultsProblem(faults pipeline.Faults) problem {
	first := faults[0]
	answer := problem{Status: http.StatusUnprocessableEntity, Field: first.Field, Detail: first.Message, Line: first.Line}
	for _, fault := range faults {
		answer.Errors = append(answer.Errors, faultJSON{Field: fault.Field, Line: fault.Line, Message: fault.Message})
	}
	return answer
}

// invalid returns the field and the message of an invalid value, if err is of that kind.
func invalid(err error) (field, message string, ok bool) {
	if value, is := errors.AsType[tenants.Invalid](err); is {
		return value.Field, value.Message, true
	}
	if setting, is := errors.AsType[pipeline.Invalid](err); is {
		return setting.Field, setting.Message, true
	}
	if asked, is := errors.AsType[session.Invalid](err); is {
		return asked.Field, asked.Message, true
	}
	if errors.Is(err, session.ErrCursor) {
		wrong := wrongCursor()
		return wrong.Field, wrong.Message, true
	}
	return "", "", false
}

// answer is the answer to a kind of error.
type answer struct {
	kind   error
	status int
	field  string
	detail string

	retryAfter int // seconds; 0 omits Retry-After
}

// known lists the kinds of errors; the first match counts.
func known() []answer {
	return []answer{
		{kind: errNoLogin, status: http.StatusUnauthorized, detail: "Log in, or send an API key with the scope manage as Authorization: Bearer."},
		{kind: tenants.ErrCodeNeeded, status: http.StatusUnauthorized, field: "code", detail: "This account has a second factor. Send the code of its app, or a recovery code, as code."},
		{kind: errWrongCode, status: http.StatusUnauthorized, field: "code", detail: "The code is wrong, too old, or was used."},
		{kind: tenants.ErrWrongLogin, status: http.StatusUnauthorized, detail: "The e-mail address or the password is wrong."},
		{kind: tenants.ErrLoginEnded, status: http.StatusUnauthorized, detail: "This login has ended. Log in again."},
		{kind: tenants.ErrKeyMalformed, status: http.StatusUnauthorized, detail: "This is not a valid Palimpsest API key. Keys start with plm_."},
		{kind: tenants.ErrKeyUnknown, status: http.StatusUnauthorized, detail: "This is not a valid Palimpsest API key. Keys start with plm_."},
		{kind: tenants.ErrKeyRevoked, status: http.StatusUnauthorized, detail: "This API key was revoked. Create another."},
		{kind: tenants.ErrKeyExpired, status: http.StatusUnauthorized, detail: "This API key has expired. Create another."},
		{kind: tenants.ErrScopeMissing, status: http.StatusForbidden, detail: "This API key lacks the scope manage, or the role of the person behind it does not allow this; with the scope read it may only GET, with the scope sessions only change sessions."},
		{kind: tenants.ErrDenied, status: http.StatusForbidden, detail: "Your role in this workspace does not allow this. Ask an owner of it."},
		{kind: tenants.ErrLogInAgain, status: http.StatusForbidden, detail: "This needs a login of the last 15 minutes. Log in again with POST /login, then repeat the request."},
		{kind: tenants.ErrSignOnOnly, status: http.StatusForbidden, detail: "This login came through a workspace's single sign-on and opens that workspace only. Log in with your password or a passkey."},
		{kind: tenants.ErrSuspended, status: http.StatusForbidden, detail: "This workspace is suspended; nothing of it is deleted. Log in to read the reason, and ask the person who runs this installation."},
		{kind: tenants.ErrInviteOnly, status: http.StatusForbidden, detail: "Nobody signs up here without an invitation. Ask an owner or admin of a workspace for one."},
		{kind: errNoAccount, status: http.StatusForbidden, detail: "An API key has no account. Log in as a person with POST /login."},
		{kind: tenants.ErrLinkEnded, status: http.StatusGone, field: "token", detail: "This link was used, is too old, or was sent to an address that the account has left. Ask for another one."},
		{kind: errNoWorkspace, status: http.StatusForbidden, detail: "You belong to no workspace. Create one with POST /workspaces, or accept an invitation."},
		{kind: errNoKey, status: http.StatusForbidden, detail: "No API key may do this, whatever its scopes. Log in with POST /login as someone whose role allows it."},
		{kind: errNoPerson, status: http.StatusForbidden, detail: "An API key belongs to one workspace. Log in to do this."},
		{kind: tenants.ErrLastOwner, status: http.StatusConflict, field: "role", detail: "The workspace would have no owner. Make someone else an owner first."},
		{kind: tenants.ErrInvitation, status: http.StatusNotFound, field: "token", detail: "This invitation was accepted or revoked, or has expired. Ask for another."},
		{kind: tenants.ErrOtherAddress, status: http.StatusForbidden, field: "token", detail: "This invitation is for another address. Log in with the invited one."},
		{kind: tenants.ErrTextDenied, status: http.StatusForbidden, detail: "This workspace does not let you read what was said there; figures are not held back. An owner or admin changes that under Settings."},
		{kind: errCrossOrigin, status: http.StatusForbidden, detail: "The request comes from another site. Send it from this one, or with an API key."},
		{kind: tenants.ErrTooMany, status: http.StatusTooManyRequests, detail: "Too many attempts. Try again later."},
		{kind: tenants.ErrEmailTaken, status: http.StatusConflict, field: "email", detail: "An account with this e-mail address exists. Log in, or use another address."},
		{kind: tenants.ErrConflict, status: http.StatusConflict, field: "version", detail: "Someone else saved in the meantime. Read the current version and save again."},
		{kind: errUnknownRoute, status: http.StatusNotFound, detail: "The API has no such route; /api/v1/openapi.yaml lists all of them."},
		{kind: tenants.ErrNotFound, status: http.StatusNotFound, detail: "The workspace has nothing with this id."},
		{kind: session.ErrNotFound, status: http.StatusNotFound, detail: "The workspace has nothing with this id."},
		{kind: patterns.ErrNotFound, status: http.StatusNotFound, detail: "The workspace has nothing with this id."},
		{kind: patterns.ErrChanged, status: http.StatusConflict, field: "version", detail: "Someone changed the pattern in the meantime, or another one has the same words. Read it again."},
		{kind: patterns.ErrFull, status: http.StatusConflict, detail: "The workspace has as many patterns as it may have. Delete some first."},
		{kind: archive.ErrNotFound, status: http.StatusNotFound, detail: "The archive holds no message at this place."},
		{kind: archive.ErrDamaged, status: http.StatusInternalServerError, detail: "The archived bytes no longer match their SHA-256, so they are not shown. Restore the database or the blob store from a backup."},
		{kind: archive.ErrAway, status: http.StatusServiceUnavailable, retryAfter: bucketRetry, detail: "The bucket that holds this original does not answer. Nothing is lost, and requests to models pass. Try again in 30 seconds."},
		{kind: tenants.ErrAway, status: http.StatusServiceUnavailable, retryAfter: databaseRetry, detail: "The database does not answer. Requests to models pass. Try again in 5 seconds."},
		{kind: tenants.ErrBillingOff, status: http.StatusNotFound, detail: "Billing is off here: every workspace is on the local plan, without a limit."},
		{kind: errSubscribed, status: http.StatusConflict, field: "plan", detail: "The workspace has a subscription. Change its plan in the portal: POST /billing/portal."},
		{kind: errTooLarge, status: http.StatusRequestEntityTooLarge, detail: "The request body is larger than 1 MiB."},
		{kind: errSlow, status: http.StatusRequestTimeout, detail: "The request body stopped coming or came too slowly. Send it again, over a better connection."},
		{kind: errNotJSON, status: http.StatusUnsupportedMediaType, detail: "Send the body as Content-Type: application/json."},
		{kind: errNotForm, status: http.StatusUnsupportedMediaType, detail: "Send the body as Content-Type: application/x-www-form-urlencoded."},
		{kind: errNoAPIKey, status: http.StatusForbidden, detail: "Send the API key that is to end as Authorization: Bearer."},
		{kind: errNotConfig, status: http.StatusUnsupportedMediaType, detail: "Send the pipeline as Content-Type: application/yaml or application/json."},
		{kind: context.Canceled, status: statusClientGone, detail: "The client closed the connection."},
	}
}
