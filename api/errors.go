package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/api/connections"
	"palimpsest/api/limits"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

// Errors of a request that the proxy itself finds.
var (
	errBodyTooLarge = errors.New("request body is larger than 32 MiB")
	errEncoding     = errors.New("content encoding is not supported")
	errNoKey        = errors.New("no API key")
	errQueueFull    = errors.New("too many requests at once")
)

// retryDatabase is the Retry-After value, in seconds, for requests that need a database that is away.
const retryDatabase = "5"

// codeDatabaseAway is the error code for data that only the database has.
const codeDatabaseAway = "database_unavailable"

// codeSignIn is the error code for a provider key that its sign-in service refuses.
const codeSignIn = "provider_sign_in"

// codeLate is the error code for an answer that took too long.
const codeLate = "provider_timeout"

// problem maps the kind of one of our errors to the client's answer. The error's text stays in the log unless
// the sender can act on it.
func problem(err error) wire.Problem {
	var invalid tenants.Invalid
	var setting pipeline.Invalid
	var bad prompt.BodyError
	var taken tenants.NotTaken
	var forbidden tenants.Forbidden
	var exceeded limits.Exceeded
	var crowded connections.TooMany
	var large *wire.Invalid
	if signIn, is := errors.AsType[signIn](err); is {
		return signIn.problem()
	}
	switch {
	case errors.As(err, &crowded):
		return wire.Problem{Status: crowded.Status(), Type: "rate_limit_error", Code: "too_many_connections", Message: crowded.Error()}
	case errors.As(err, &large) && large.IsLarge:
		return wire.Problem{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Code: "request_too_large",
			Message: "The request holds too much: " + sentence(large.Error())}
	case errors.As(err, &forbidden):
		return wire.Problem{Status: http.StatusForbidden, Type: "permission_error", Code: forbidden.Code, Message: forbidden.Message}
	case errors.As(err, &exceeded):
		return exceededProblem(exceeded)
	case errors.As(err, &taken):
		return wire.Problem{Status: http.StatusNotFound, Type: "not_found_error", Code: "model_not_found", Message: notTaken(taken)}
	}
	for _, fault := range faults() {
		if errors.Is(err, fault.is) {
			return wire.Problem{Status: fault.status, Type: fault.kind, Code: fault.code, Message: fault.message}
		}
	}
	switch {
	case errors.As(err, &invalid):
		return wire.Problem{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_value", Message: sentence(invalid.Error())}
	case errors.As(err, &setting):
		return wire.Problem{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_value", Message: sentence(setting.Error())}
	case errors.As(err, &bad):
		return wire.Problem{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_body",
			Message: "The request body cannot be read: " + bad.Error() + "."}
	case errors.Is(err, context.Canceled):
		return wire.Problem{Status: statusClientGone, Type: "api_error", Code: "client_gone", Message: "The client closed the connection."}
	default:
		return wire.Problem{Status: http.StatusInternalServerError, Type: "api_error", Code: "internal_error",
			Message: "The proxy failed to handle the request. Nothing was lost; try again."}
	}
}

// fault is an error with a fixed answer.
type fault struct {
	is                  error
	status              int
	kind, code, message string
}

// faults lists them all. If an error matches two, the first one counts: first the edge's refusals for
// everyone, then failures to reach a provider, then faults of the key or the request.
func faults() []fault {
	return []fault{
		{errAccountBytes, http.StatusTooManyRequests, "rate_limit_error", "account_bytes",
			"The account that owns this workspace has large requests under way, and this installation keeps room for others. Try again in a second, or send fewer large requests at once."},
		{errWorkspaceBytes, http.StatusTooManyRequests, "rate_limit_error", "workspace_bytes",
			"The workspace's requests under way are as large together as this installation allows. Try again in a second, or send fewer large requests at once."},
		{errProcessBytes, http.StatusTooManyRequests, "rate_limit_error", "overloaded",
			"All requests under way are as large together as this installation allows. Nothing is wrong with yours; try again in a second."},
		{connections.ErrSlow, http.StatusRequestTimeout, "timeout_error", "request_timeout",
			"The request body stopped coming or came too slowly. Send it again, over a better connection."},
		{errBodyTooLarge, http.StatusRequestEntityTooLarge, "request_too_large", "request_too_large",
			"The request body is larger than 32 MiB. Send fewer or smaller messages; images are best sent by URL."},
		{upstream.ErrPath, http.StatusBadRequest, "invalid_request_error", "invalid_path",
			"The request's path could be taken for another one. Write it as the provider documents it, such as /v1/messages: no dot segments, no backslashes, and no escapes of characters that need none."},
		{upstream.ErrMethod, http.StatusMethodNotAllowed, "invalid_request_error", "method_not_allowed",
			"This method is not relayed. Use " + strings.Join(upstream.Methods(), ", ") + "."},
		{errUnknownEncoding, http.StatusBadGateway, "api_error", "provider_encoding",
			"The provider encoded its answer in a way that the proxy cannot read. Ask the provider for answers that are not encoded."},
		{errEncoding, http.StatusUnsupportedMediaType, "invalid_request_error", "unsupported_content_encoding",
			"The request body's Content-Encoding is not supported. Send it as gzip, deflate, br, zstd or unencoded."},
		{errCrowded, http.StatusTooManyRequests, "rate_limit_error", "workspace_concurrency",
			"The workspace has as many requests open at once as this installation allows. Try again when one of them has ended."},
		{upstream.ErrForbiddenAddress, http.StatusBadRequest, "invalid_request_error", "forbidden_base_url",
			"The provider's base URL leads to an address that is not allowed: a private or link-local one, or one of this server itself. Change the base URL."},
		{errNoList, http.StatusNotFound, "not_found_error", "no_model_list",
			"The cloud of the workspace's provider key has no list of models. Name them in the key's models on the dashboard's Providers page."},
		{upstream.ErrSignIn, http.StatusBadGateway, "api_error", codeSignIn,
			"The cloud's sign-in service gives no access token for the workspace's provider key. Test the key on the dashboard's Providers page, and replace it."},
		{upstream.ErrUnreachable, http.StatusBadGateway, "api_error", "provider_unreachable",
			"The provider could not be reached. Nothing was lost; try again, or check the provider key's base URL."},
		{upstream.ErrUnanswered, http.StatusBadGateway, "api_error", "provider_unreachable",
			"The connection to the provider ended before it answered. It may have worked on the request and charge for it, so an estimate of its cost counts. Try again, or check the provider key's base URL."},
		{upstream.ErrLate, http.StatusGatewayTimeout, "timeout_error", codeLate,
			"The provider did not begin to answer within the longest wait that its provider key sets. It may still work on the request and charge for it, so an estimate of its cost counts. " + "Raise the wait on the dashboard's Providers page, or leave it empty to wait as long as your client does."},
		{errNoKey, http.StatusUnauthorized, "authentication_error", "invalid_api_key",
			"No Palimpsest API key was sent. Send it as x-api-key, x-goog-api-key or Authorization: Bearer; create one on the dashboard's API keys page."},
		{tenants.ErrKeyMalformed, http.StatusUnauthorized, "authentication_error", "invalid_api_key",
			"This is not a valid Palimpsest API key. Keys start with plm_; create one on the dashboard's API keys page. The key of a provider belongs on its Providers page."},
		{tenants.ErrKeyUnknown, http.StatusUnauthorized, "authentication_error", "invalid_api_key",
			"This is not a valid Palimpsest API key. Keys start with plm_; create one on the dashboard's API keys page. The key of a provider belongs on its Providers page."},
		{tenants.ErrKeyRevoked, http.StatusUnauthorized, "authentication_error", "invalid_api_key",
			"This Palimpsest API key was revoked. Create another on the dashboard's API keys page."},
		{tenants.ErrKeyExpired, http.StatusUnauthorized, "authentication_error", "invalid_api_key",
			"This Palimpsest API key has expired, or its secret was replaced by another. Use the newer secret, or create a key on the dashboard's API keys page."},
		{tenants.ErrSuspended, http.StatusForbidden, "permission_error", "workspace_suspended",
			"This workspace is suspended, so its API keys are refused; nothing of it is deleted. Its owners see the reason on the dashboard. Ask the person who runs this installation of Palimpsest."},
		{tenants.ErrUnverified, http.StatusForbidden, "permission_error", "email_not_verified",
			"No owner of this workspace has verified an e-mail address yet. An owner opens the link in the mail, or asks for another on the dashboard's account page; then send the request again."},
		{errNoRecall, http.StatusForbidden, "permission_error", "insufficient_scope",
			"This Palimpsest API key has neither the scope recall nor the scope proxy. Use a key that has one of them."},
		{tenants.ErrScopeMissing, http.StatusForbidden, "permission_error", "insufficient_scope",
			"This Palimpsest API key lacks the scope proxy, or the role of the person behind it does not allow it. Use another key."},
		{tenants.ErrNoProvider, http.StatusBadRequest, "invalid_request_error", "no_provider_key",
			"The workspace has no key for this provider that is switched on. Store one on the dashboard's Providers page, or name another in X-Palimpsest-Provider."},
		{errQueueFull, http.StatusServiceUnavailable, "overloaded_error", "overloaded",
			"The proxy is overloaded. Try again in a moment."},
		{tenants.ErrAway, http.StatusServiceUnavailable, "overloaded_error", codeDatabaseAway,
			"The database does not answer, and this server has not yet read your API key or the settings of its workspace. Nothing was lost. Try again in " + retryDatabase + " seconds."},
		{prompt.ErrResumes, http.StatusNotFound, "not_found_error", "thread_not_found",
			`Palimpsest does not continue threads, because it shortens and archives whole conversations. Send the whole conversation again, with thread {"type":"create"} or without thread. ` + "With X-Palimpsest-Bypass: true on every request of a thread, the provider continues it."},
	}
}

// exceededProblem says which limit a request exceeds, and when to retry.
func exceededProblem(exceeded limits.Exceeded) wire.Problem {
	quota := exceeded.Quota
	problem := wire.Problem{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded"}
	owner, place := ownerOf(exceeded.Subject.Spender)
	say := func(limit string, next string) {
		problem.Message = fmt.Sprintf("%s is limited to %s. %s", owner, limit, next)
	}
	again := fmt.Sprintf("Try again in %d seconds; the limit can be changed %s.", seconds(exceeded.Wait), place)
	budget := fmt.Sprintf("and has used it up. It begins again in %d seconds, at midnight UTC; or raise it %s.", seconds(exceeded.Wait), place)
	switch exceeded.Kind {
	case limits.Requests:
		say(many(quota.RequestsPerMinute, "request")+" a minute", again)
	case limits.Tokens:
		say(fmt.Sprintf("%d tokens a minute", quota.TokensPerMinute), again)
		if exceeded.Asked > 0 {
			say(fmt.Sprintf("%d tokens a minute", quota.TokensPerMinute),
				fmt.Sprintf("This request has about %d and never fits. Send less, or raise the limit %s.", exceeded.Asked, place))
		}
	case limits.Concurrency:
		say(many(quota.Concurrency, "request")+" at once", "Wait until one of them has ended; the limit can be changed "+place+".")
	case limits.DayBudget:
		problem.Code, problem.OpenAIType = "insufficient_quota", "insufficient_quota"
		problem.Message = fmt.Sprintf("%s has a budget of %s USD a day %s", owner, tenants.USD(quota.DayMicroUSD), budget)
	case limits.MonthBudget:
		problem.Code, problem.OpenAIType = "insufficient_quota", "insufficient_quota"
		problem.Message = fmt.Sprintf("%s has a budget of %s USD a month %s", owner, tenants.USD(quota.MonthMicroUSD), budget)
	case limits.HeldBudget:
		problem.Message = fmt.Sprintf("%s has a budget, and the requests that are under way may cost all that is left of it. "+
			"Wait until one of them has ended; the budget can be raised %s.", owner, place)
	case limits.None:
	}
	return problem
}

// ownerOf says whose a limit or budget is, and where to change it.
func ownerOf(who tenants.Spender) (owner, place string) {
	place = "by an owner or admin, on the dashboard's Settings page"
	switch who.Kind {
	case tenants.WorkspaceSpends:
		return "The workspace", place
	case tenants.MemberSpends:
		return "The person behind this Palimpsest API key", place
	case tenants.ProjectSpends:
		return fmt.Sprintf("The project %q", who.ID), place
	case tenants.EndUserSpends:
		return "The end user of this request", place
	case tenants.KeySpends:
	}
	return "This Palimpsest API key", "on the dashboard's API keys page"
}

// many writes a number of things.
func many(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// seconds rounds a wait up, so that a retry at that time is admitted.
func seconds(wait time.Duration) int { return int((wait + time.Second - 1) / time.Second) }

// statusClientGone is the status logged for a client that left before its answer.
const statusClientGone = 499

// sentence ends a message with a full stop.
func sentence(message string) string { return strings.TrimSuffix(message, ".") + "." }

// maxNamed bounds the number of models named in an error.
const maxNamed = 30

// notTaken lists the models that the workspace's keys accept.
func notTaken(err tenants.NotTaken) string {
	named, more := err.Takes, ""
	if len(named) > maxNamed {
		named, more = named[:maxNamed], fmt.Sprintf(" and %d more", len(named)-maxNamed)
	}
	return fmt.Sprintf("No provider key of the workspace takes the model %.100q. Allowed are %s%s; who manages providers can add it on the dashboard's Providers page.",
		err.Model, strings.Join(named, ", "), more)
}

const (
	// maxSaid bounds the kept part of a provider's error, in bytes.
	maxSaid = 8 << 10
	// maxHeard bounds the part that is read. It is larger so that a secret that ends behind maxSaid is still
	// recognized.
	maxHeard = 2 * maxSaid
)

// refusal collects the text of an error answer. A nil refusal ignores it.
type refusal struct {
	encoding string
	redactor *redaction.Redactor
	heard    []byte
}

// refusalOf returns a collector for the answer to a request. It is nil if the answer is not an error or must
// not be kept.
func refusalOf(event *RequestLog, response *http.Response) *refusal {
	if response.StatusCode < http.StatusBadRequest || event.record.noStore {
		return nil
	}
	return &refusal{encoding: encodingOf(response.Header), redactor: event.record.redactor}
}

// hear takes the next bytes of the answer.
func (r *refusal) hear(p []byte) {
	if r != nil {
		r.heard = append(r.heard, p[:min(len(p), maxHeard-len(r.heard))]...)
	}
}

// text returns the kept part, or nil if empty.
func (r *refusal) text() []byte {
	if r == nil {
		return nil
	}
	plain := r.heard
	if isEncoding(r.encoding) {
		var err error
		if plain, err = decoded(r.encoding, r.heard, maxHeard); err != nil {
			return nil
		}
	}
	return keptOf(plain, r.redactor)
}

// keptOf returns the kept part of an error: its beginning, without personal data or anything that looks like
// a secret. It is nil for binary data.
func keptOf(plain []byte, redactor *redaction.Redactor) []byte {
	text := bytes.TrimSpace(plain)
	if len(text) == 0 || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	clean := bytes.ToValidUTF8([]byte(redactor.Text(redaction.Clean(string(text)))), []byte("\uFFFD"))
	if len(clean) <= maxSaid {
		return clean
	}
	return []byte(excerpts.Bytes(string(clean), maxSaid) + "…")
}

// refuse answers a request with one of our errors, in its client's dialect.
func (s *Server) refuse(c echo.Context, codec wire.Codec, event *RequestLog, err error) error {
	if why := whyEnded(c.Request().Context()); why != nil {
		err = why
	}
	problem := problem(err)
	if errors.Is(err, tenants.ErrSuspended) && s.Contact != "" {
		problem.Message += " Its contact is " + s.Contact + "."
	}
	event.outcome.refused(problem.Status, problem.Type, err)
	if problem.Status == statusClientGone {
		event.outcome.brokeOff("client", nil)
		return nil
	}
	problem.RequestID = event.ID.String()
	sign(c.Response().Header(), event)
	exceeded, isLimit := errors.AsType[limits.Exceeded](err)
	if isLimit {
		s.Metrics.request.refused.WithLabelValues(exceeded.Kind.String()).Inc()
		if exceeded.Wait > 0 {
			c.Response().Header().Set("Retry-After", strconv.Itoa(seconds(exceeded.Wait)))
		}
	}
	if problem.Status == http.StatusRequestTimeout {
		c.Response().Header().Set(echo.HeaderConnection, "close") // the rest of the body may still arrive
	}
	switch {
	case isLimit && exceeded.Asked == 0 && exceeded.Kind != limits.DayBudget && exceeded.Kind != limits.MonthBudget:
		c.Response().Header().Set("X-Should-Retry", "true")
	case errors.Is(err, errCrowded), isBytes(err):
		c.Response().Header().Set(echo.HeaderRetryAfter, retryCrowded)
	case errors.Is(err, tenants.ErrTooMany):
		c.Response().Header().Set(echo.HeaderRetryAfter, connections.TooMany{}.RetryAfter())
	case problem.Code == codeDatabaseAway:
		c.Response().Header().Set(echo.HeaderRetryAfter, retryDatabase)
	case problem.Code == codeSignIn:
		c.Response().Header().Set("X-Should-Retry", "false")
	case problem.Code == codeLate:
		c.Response().Header().Set("X-Should-Retry", "false") // the next try would be charged for as well
	case problem.Status < http.StatusInternalServerError && problem.Status != http.StatusRequestTimeout:
		c.Response().Header().Set("X-Should-Retry", "false")
	}
	return c.Blob(problem.Status, echo.MIMEApplicationJSON, codec.Error(problem))
}
