// Package paths has every path of the dashboard, for handlers and views, so that each path is written once.
package paths

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// The paths without parameters.
const (
	Home         = "/"
	SignUp       = "/signup"
	LogIn        = "/login"
	LogOut       = "/logout"
	Theme        = "/theme"
	Overview     = "/overview"
	FirstRequest = "/overview/first-request"
	// OverviewCSV is the download of Overview's tables.
	OverviewCSV = "/overview/data.csv"
	// Spend is the page of spend, and SpendStatement a month's spend for printing.
	Spend          = "/spend"
	SpendCSV       = "/spend/data.csv"
	SpendStatement = "/spend/statement"
	// FirstRequestBare is the same without links.
	FirstRequestBare = FirstRequest + "?bare=1"
	// Choose is the path that saves a choice of the set-up card.
	Choose = "/overview/choose"
	// DismissAdvice is the path that dismisses the advice about the trigger.
	DismissAdvice = "/overview/trigger-advice/dismiss"
	Keys          = "/keys"
	KeysCSV       = "/keys/csv"
	NewKey        = "/keys/new"
	// Device is the page on which a person lets a terminal log in.
	Device = "/device"
	// CheckDevice is the path for a terminal's code, and DecideDevice for the decision.
	CheckDevice     = "/device/check"
	DecideDevice    = "/device/decide"
	Providers       = "/providers"
	ProvidersCSV    = "/providers/csv"
	NewProvider     = "/providers/new"
	Pipeline        = "/pipeline"
	PipelinePreview = "/pipeline/preview"
	PreviewCSV      = "/pipeline/preview/csv"
	PipelineHistory = "/pipeline/history"
	PipelineYAML    = "/pipeline/yaml"
	// PipelineFile is the download of the pipeline as YAML.
	PipelineFile   = "/pipeline/yaml/pipeline.yaml"
	Sessions       = "/sessions"
	SessionsCSV    = "/sessions/csv"
	DeleteSessions = "/sessions/delete"
	EraseUser      = "/sessions/erase"
	ExportSessions = "/sessions/export"
	Requests       = "/requests"
	CompareWith    = "/requests/compare"
	// CompareSessionsWith is the page that compares two sessions.
	CompareSessionsWith = "/sessions/compare"
	// RequestsCSV is the download of the list.
	RequestsCSV = "/api/v1/requests.csv"
	Patterns    = "/patterns"
	NewPattern  = "/patterns/new"
	PatternsCSV = "/patterns/csv"
	Jump        = "/jump"
	// Docs is the documentation; pages are below it.
	Docs = "/docs"
	// OpenAPI describes the JSON API.
	OpenAPI         = "/api/v1/openapi.yaml"
	Live            = "/live" // stream of the workspace's events
	More            = "/more"
	Billing         = "/billing"
	BillingCheckout = Billing + "/checkout"
	BillingPortal   = Billing + "/portal"
	InvoicesCSV     = Billing + "/invoices/csv"
	Audit           = "/audit"
	// AuditCSV is the download of the list.
	AuditCSV        = "/api/v1/audit.csv"
	Settings        = "/settings"
	Retention       = "/settings/retention"
	Budgets         = "/settings/budgets"
	Prices          = "/settings/prices"
	RemovePrice     = "/settings/prices/remove"
	ModelLimits     = "/settings/limits"
	RemoveLimit     = "/settings/limits/remove"
	DeleteWorkspace = "/settings/delete"
	ImportConfig    = "/settings/import"
	// ExportConfig is the download of a workspace's settings.
	ExportConfig = "/api/v1/config/export"
	// ExportWorkspace is the download of all of a workspace's data.
	ExportWorkspace = "/api/v1/export"
	Members         = "/members"
	InviteMembers   = "/members/invite"
	MembersCSV      = "/members/csv"
	InvitationsCSV  = "/members/invitations/csv"
	Workspaces      = "/workspaces"
	NewWorkspace    = "/workspaces/new"
	RenameWorkspace = "/workspaces/rename"
	LeaveWorkspace  = "/workspaces/leave"
	Invite          = "/invite"
	Operator        = "/operator"
	OperatorCSV     = "/operator/csv"
	OperatorLogCSV  = "/operator/log/csv"

	Reset         = "/reset"          // form for a link; a link is below it
	NewPassword   = "/reset/new"      // after opening a link
	Verify        = "/verify"         // form for another link; a link is below it
	ConfirmEmail  = "/verify/confirm" // after opening a link
	Account       = "/account"
	Password      = "/account/password"
	Email         = "/account/email"
	Verification  = "/account/verification"
	AccountLogins = "/account/logins"
	EndLogins     = "/account/logins/end"
	DeleteAccount = "/account/delete"
	DevMail       = "/dev/mail" // a token is below it

	SignOnBegin    = "/login/sign-on"
	SignOnCallback = "/login/sign-on/callback" // identity providers redirect back to it
	SignOn         = "/settings/sign-on"
	RemoveSignOn   = "/settings/sign-on/remove"
	Domains        = "/settings/sign-on/domains"
	ProveDomain    = "/settings/sign-on/domains/prove"
	RemoveDomain   = "/settings/sign-on/domains/remove"

	LogInPasskey       = "/login/passkey"              // instead of a password
	PasskeyOptions     = "/login/passkey/options"      //nolint:gosec // a path
	CodePasskey        = "/login/code/passkey"         //nolint:gosec // a path: after the password
	CodePasskeyOptions = "/login/code/passkey/options" //nolint:gosec // a path
	Passkeys           = "/account/passkeys"
	NewPasskey         = "/account/passkeys/new"
	PasskeyCodes       = "/account/passkeys/recovery-codes"

	LogInCode     = "/login/code" // after the password, with a second factor
	SecondFactor  = "/account/second-factor"
	StartFactor   = "/account/second-factor/start"
	FactorImage   = "/account/second-factor/qr.svg"
	ConfirmFactor = "/account/second-factor/confirm"
	RecoveryCodes = "/account/second-factor/recovery-codes"
	RemoveFactor  = "/account/second-factor/remove"

	PipelineWindows      = "/pipeline/windows" // context windows of models
	WindowsCSV           = "/pipeline/windows/csv"
	RemovePipelineWindow = "/pipeline/windows/remove"
)

// RenamePasskey is the path that renames a passkey.
func RenamePasskey(id uuid.UUID) string { return Passkeys + "/" + id.String() + "/rename" }

// RemovePasskey is the path that removes a passkey.
func RemovePasskey(id uuid.UUID) string { return Passkeys + "/" + id.String() + "/remove" }

// EndLogin is the path that ends one login.
func EndLogin(id uuid.UUID) string { return AccountLogins + "/" + id.String() + "/end" }

// MemberRole is the path that changes a member's role.
func MemberRole(id uuid.UUID) string { return Members + "/" + id.String() + "/role" }

// RemoveMember is the path that removes a member.
func RemoveMember(id uuid.UUID) string { return Members + "/" + id.String() + "/remove" }

// ResendInvitation is the path that resends an invitation.
func ResendInvitation(id uuid.UUID) string {
	return Members + "/invitations/" + id.String() + "/resend"
}

// RevokeInvitation is the path that revokes an invitation.
func RevokeInvitation(id uuid.UUID) string {
	return Members + "/invitations/" + id.String() + "/revoke"
}

// EnterWorkspace is the path that switches to another workspace.
func EnterWorkspace(id tenants.WorkspaceID) string { return Workspaces + "/" + id.String() + "/enter" }

// Invitation is the page of an invitation, by its link's secret.
func Invitation(secret string) string { return Invite + "/" + url.PathEscape(secret) }

// InvitationSignUp is the path that signs up through an invitation.
func InvitationSignUp(secret string) string { return Invitation(secret) + "/signup" }

// SuspendWorkspace is the operators' path that suspends a workspace.
func SuspendWorkspace(id tenants.WorkspaceID) string {
	return Operator + "/workspaces/" + id.String() + "/suspend"
}

// ResumeWorkspace is the path that ends the suspension.
func ResumeWorkspace(id tenants.WorkspaceID) string {
	return Operator + "/workspaces/" + id.String() + "/resume"
}

// RevokeKey is the path that revokes an API key.
func RevokeKey(id uuid.UUID) string { return Keys + "/" + id.String() + "/revoke" }

// EditKey is the path that changes an API key.
func EditKey(id uuid.UUID) string { return Keys + "/" + id.String() + "/edit" }

// RotateKey is the path that rotates an API key.
func RotateKey(id uuid.UUID) string { return Keys + "/" + id.String() + "/rotate" }

// KeyUse is the path that waits for the first request with an API key.
func KeyUse(id uuid.UUID) string { return Keys + "/" + id.String() + "/use" }

// TestProvider is the path that tests a provider key.
func TestProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/test" }

// EditProvider is the path that changes a provider key's use.
func EditProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/edit" }

// ReplaceProvider is the path that replaces a provider key's secret.
func ReplaceProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/replace" }

// RemoveProvider is the path that removes a provider key.
func RemoveProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/remove" }

// Pattern is the path of a rule.
func Pattern(id uuid.UUID) string { return Patterns + "/" + id.String() }

// ApprovePattern is the path that approves a rule.
func ApprovePattern(id uuid.UUID) string { return Pattern(id) + "/approve" }

// DisablePattern is the path that disables a rule.
func DisablePattern(id uuid.UUID) string { return Pattern(id) + "/disable" }

// EditPattern is the path that changes a rule.
func EditPattern(id uuid.UUID) string { return Pattern(id) + "/edit" }

// DeletePattern is the path that deletes a rule.
func DeletePattern(id uuid.UUID) string { return Pattern(id) + "/delete" }

// PipelineVersion is the path of a saved version of the pipeline.
func PipelineVersion(version int) string { return PipelineHistory + "/" + strconv.Itoa(version) }

// Setting is the address of a module's setting on the pipeline page, by its path in the configuration:
// "ipc.targetUtilization".
func Setting(path string) string {
	module, _, _ := strings.Cut(path, ".")
	return With(Pipeline, "module", module) + "#field-" + strings.ReplaceAll(path, ".", "-")
}

// RestorePipeline is the path that restores a version of the pipeline.
func RestorePipeline(version int) string { return PipelineVersion(version) + "/restore" }

// Session is the path of a session.
func Session(id uuid.UUID) string { return Sessions + "/" + id.String() }

// SessionCount is the path from which an open page reads a session's current number of requests.
func SessionCount(id uuid.UUID) string { return Session(id) + "/count" }

// Request is the path of a request.
func Request(id uuid.UUID) string { return Requests + "/" + id.String() }

// SendRequestAgain is the path that resends a request.
func SendRequestAgain(id uuid.UUID) string { return Request(id) + "/again" }

// CompareRequests is the page that compares two requests.
func CompareRequests(a, b uuid.UUID) string {
	return With(CompareWith, "a", a.String(), "b", b.String())
}

// Message is the path of a session's page with one message of a lane open.
func Message(session, lane uuid.UUID, index int) string {
	return With(Session(session), "lane", lane.String(), "m", strconv.Itoa(index))
}

// Hit is the path of a session's page with the found message open. If several messages have the same text, it
// is the first.
func Hit(session, lane uuid.UUID, index int, asked string) string {
	return With(Session(session), "lane", lane.String(), "m", strconv.Itoa(index), "o", strconv.Itoa(index), "q", asked)
}

// ContinueSession is the page with the ways to continue a session.
func ContinueSession(session uuid.UUID) string { return Session(session) + "/continue" }

// FindInSession is the path that searches a session's messages.
func FindInSession(session uuid.UUID) string { return Session(session) + "/find" }

// OriginalBytes is the path of an archived message's bytes in the product API.
func OriginalBytes(session, lane uuid.UUID, index int) string {
	return With("/api/v1/sessions/"+session.String()+"/archive/"+strconv.Itoa(index), "lane", lane.String())
}

// With returns path with a query of names and values. Empty values are left out.
func With(path string, namesAndValues ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			query.Set(namesAndValues[i], namesAndValues[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Local returns next if it is a path of this site, and Overview otherwise, so that a link can't redirect a
// person to another site after the login.
func Local(next string) string {
	parsed, err := url.Parse(next)
	switch {
	case err != nil, parsed.Scheme != "", parsed.Host != "", parsed.User != nil:
		return Overview
	case !strings.HasPrefix(next, "/"), strings.HasPrefix(next, "//"), strings.ContainsAny(next, "\\\r\n\t"):
		return Overview
	}
	return next
}

// Export is the download of a whole session with its verification data.
func Export(session uuid.UUID) string { return "/api/v1/sessions/" + session.String() + "/export" }

// ExportAs is the download of a session in a format: ndjson, jsonl, markdown or tar.
func ExportAs(session uuid.UUID, format string) string {
	return With(Export(session), "format", format)
}

// ExportOf is the download of several whole sessions as one file, in a format or, with "", as lines.
func ExportOf(sessions []uuid.UUID, format string) string {
	query := url.Values{}
	if format != "" {
		query.Set("format", format)
	}
	for _, id := range sessions {
		query.Add("id", id.String())
	}
	return "/api/v1/sessions/export?" + query.Encode()
}

// PinTurn is the path that pins turns of a session, so that they are not compressed.
func PinTurn(session uuid.UUID) string { return Session(session) + "/pin" }

// ReleaseTurn is the path that releases a pinned turn.
func ReleaseTurn(session uuid.UUID) string { return Session(session) + "/release" }

// PinSession is the path that pins a whole session, so that it is not compacted.
func PinSession(session uuid.UUID) string { return Session(session) + "/pin-session" }

// ReleaseSession is the path that releases a pinned session.
func ReleaseSession(session uuid.UUID) string { return Session(session) + "/release-session" }

// RestoreTurns is the path that puts turns back into the next request.
func RestoreTurns(session uuid.UUID) string { return Session(session) + "/restore" }

// CompactSession is the path that orders an epoch.
func CompactSession(session uuid.UUID) string { return Session(session) + "/compact" }

// StarSession is the path that stars a session.
func StarSession(session uuid.UUID) string { return Session(session) + "/star" }

// CommentOnSession is the path that adds a comment to a session.
func CommentOnSession(session uuid.UUID) string { return Session(session) + "/comments" }

// ScoreSession is the path that scores a session.
func ScoreSession(session uuid.UUID) string { return Session(session) + "/score" }

// LabelSession is the path that puts a label on a session.
func LabelSession(session uuid.UUID) string { return Session(session) + "/labels" }

// RemoveLabel is the path that takes a label off a session.
func RemoveLabel(session uuid.UUID) string { return LabelSession(session) + "/remove" }

// DeleteComment is the path that deletes a comment.
func DeleteComment(session, comment uuid.UUID) string {
	return CommentOnSession(session) + "/" + comment.String() + "/delete"
}

// CompareSessions is the page that compares two sessions.
func CompareSessions(a, b uuid.UUID) string {
	return With(CompareSessionsWith, "a", a.String(), "b", b.String())
}

// DeleteSession is the path that deletes a session.
func DeleteSession(session uuid.UUID) string { return Session(session) + "/delete" }

// SessionRequests is the download of the figures of a lane's requests as CSV.
func SessionRequests(session, lane uuid.UUID) string {
	return With(Session(session)+"/requests.csv", "lane", lane.String())
}

// SessionEpochs is the download of a lane's epochs as CSV.
func SessionEpochs(session, lane uuid.UUID) string {
	return With(Session(session)+"/epochs.csv", "lane", lane.String())
}

// DocsPage returns the path of a documentation page.
func DocsPage(name string) string { return Docs + "/" + name }
