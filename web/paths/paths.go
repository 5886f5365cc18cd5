// Package paths names every path of the dashboard: handlers and views ask it, so
// that a path is written once.
package paths

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// The paths without a parameter.
const (
	Home         = "/"
	SignUp       = "/signup"
	LogIn        = "/login"
	LogOut       = "/logout"
	Theme        = "/theme"
	Overview     = "/overview"
	FirstRequest = "/overview/first-request"
	// OverviewCSV is where the tables of Overview are downloaded.
	OverviewCSV = "/overview/data.csv"
	// Spend says who spent how much, and SpendStatement the same of a month, to be printed.
	Spend          = "/spend"
	SpendCSV       = "/spend/data.csv"
	SpendStatement = "/spend/statement"
	// FirstRequestBare is the same without links.
	FirstRequestBare = FirstRequest + "?bare=1"
	// Choose is where the set-up card saves a choice.
	Choose = "/overview/choose"
	// DismissAdvice is where the advice about the trigger is dismissed.
	DismissAdvice = "/overview/trigger-advice/dismiss"
	Keys          = "/keys"
	KeysCSV       = "/keys/csv"
	NewKey        = "/keys/new"
	// Device is where a person lets a terminal log in.
	Device = "/device"
	// CheckDevice is where the code of a terminal is sent, and DecideDevice the decision.
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
	// PipelineFile is where the pipeline is downloaded as YAML.
	PipelineFile   = "/pipeline/yaml/pipeline.yaml"
	Sessions       = "/sessions"
	SessionsCSV    = "/sessions/csv"
	DeleteSessions = "/sessions/delete"
	EraseUser      = "/sessions/erase"
	ExportSessions = "/sessions/export"
	Requests       = "/requests"
	CompareWith    = "/requests/compare"
	// CompareSessionsWith is where two sessions are compared.
	CompareSessionsWith = "/sessions/compare"
	// RequestsCSV is where the list is downloaded.
	RequestsCSV = "/api/v1/requests.csv"
	Patterns    = "/patterns"
	NewPattern  = "/patterns/new"
	PatternsCSV = "/patterns/csv"
	Jump        = "/jump"
	// Docs is the documentation; pages are below it.
	Docs = "/docs"
	// OpenAPI describes the JSON API.
	OpenAPI         = "/api/v1/openapi.yaml"
	Live            = "/live" // a stream of what happens in the workspace
	More            = "/more"
	Billing         = "/billing"
	BillingCheckout = Billing + "/checkout"
	BillingPortal   = Billing + "/portal"
	InvoicesCSV     = Billing + "/invoices/csv"
	Audit           = "/audit"
	// AuditCSV is where the list is downloaded.
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
	// ExportConfig is where what a workspace has set is downloaded.
	ExportConfig = "/api/v1/config/export"
	// ExportWorkspace is where everything of a workspace is downloaded.
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

	Reset         = "/reset"          // ask for a link; a link is below it
	NewPassword   = "/reset/new"      // after a link was opened
	Verify        = "/verify"         // ask for a link once more; a link is below it
	ConfirmEmail  = "/verify/confirm" // after a link was opened
	Account       = "/account"
	Password      = "/account/password"
	Email         = "/account/email"
	Verification  = "/account/verification"
	AccountLogins = "/account/logins"
	EndLogins     = "/account/logins/end"
	DeleteAccount = "/account/delete"
	DevMail       = "/dev/mail" // a token is below it

	SignOnBegin    = "/login/sign-on"
	SignOnCallback = "/login/sign-on/callback" // where identity providers send people back to
	SignOn         = "/settings/sign-on"
	RemoveSignOn   = "/settings/sign-on/remove"
	Domains        = "/settings/sign-on/domains"
	ProveDomain    = "/settings/sign-on/domains/prove"
	RemoveDomain   = "/settings/sign-on/domains/remove"

	LogInPasskey       = "/login/passkey"              // in place of a password
	PasskeyOptions     = "/login/passkey/options"      //nolint:gosec // a path
	CodePasskey        = "/login/code/passkey"         //nolint:gosec // a path: after the password
	CodePasskeyOptions = "/login/code/passkey/options" //nolint:gosec // a path
	Passkeys           = "/account/passkeys"
	NewPasskey         = "/account/passkeys/new"
	PasskeyCodes       = "/account/passkeys/recovery-codes"

	LogInCode     = "/login/code" // after the password of someone with a second factor
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

// RenamePasskey is the path to rename a passkey at.
func RenamePasskey(id uuid.UUID) string { return Passkeys + "/" + id.String() + "/rename" }

// RemovePasskey is the path to remove a passkey at.
func RemovePasskey(id uuid.UUID) string { return Passkeys + "/" + id.String() + "/remove" }

// EndLogin is the path to end one login at.
func EndLogin(id uuid.UUID) string { return AccountLogins + "/" + id.String() + "/end" }

// MemberRole is the path to change a member's role at.
func MemberRole(id uuid.UUID) string { return Members + "/" + id.String() + "/role" }

// RemoveMember is the path to remove a member at.
func RemoveMember(id uuid.UUID) string { return Members + "/" + id.String() + "/remove" }

// ResendInvitation is the path to send an invitation again at.
func ResendInvitation(id uuid.UUID) string {
	return Members + "/invitations/" + id.String() + "/resend"
}

// RevokeInvitation is the path to revoke an invitation at.
func RevokeInvitation(id uuid.UUID) string {
	return Members + "/invitations/" + id.String() + "/revoke"
}

// EnterWorkspace is the path to work in another workspace at.
func EnterWorkspace(id tenants.WorkspaceID) string { return Workspaces + "/" + id.String() + "/enter" }

// Invitation is the path of the page of an invitation with a link's secret.
func Invitation(secret string) string { return Invite + "/" + url.PathEscape(secret) }

// InvitationSignUp is the path to sign up through an invitation at.
func InvitationSignUp(secret string) string { return Invitation(secret) + "/signup" }

// SuspendWorkspace is the path for an operator to suspend a workspace at.
func SuspendWorkspace(id tenants.WorkspaceID) string {
	return Operator + "/workspaces/" + id.String() + "/suspend"
}

// ResumeWorkspace is the path to end that at.
func ResumeWorkspace(id tenants.WorkspaceID) string {
	return Operator + "/workspaces/" + id.String() + "/resume"
}

// RevokeKey is the path to revoke an API key at.
func RevokeKey(id uuid.UUID) string { return Keys + "/" + id.String() + "/revoke" }

// EditKey is the path to change an API key at.
func EditKey(id uuid.UUID) string { return Keys + "/" + id.String() + "/edit" }

// RotateKey is the path to rotate an API key at.
func RotateKey(id uuid.UUID) string { return Keys + "/" + id.String() + "/rotate" }

// KeyUse is the path where the first request with an API key is waited for.
func KeyUse(id uuid.UUID) string { return Keys + "/" + id.String() + "/use" }

// TestProvider is the path to test a provider key at.
func TestProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/test" }

// EditProvider is the path to change at how a provider key is used.
func EditProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/edit" }

// ReplaceProvider is the path to give a provider key another secret at.
func ReplaceProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/replace" }

// RemoveProvider is the path to remove a provider key at.
func RemoveProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/remove" }

// Pattern is the path of a rule.
func Pattern(id uuid.UUID) string { return Patterns + "/" + id.String() }

// ApprovePattern is the path to approve a rule at.
func ApprovePattern(id uuid.UUID) string { return Pattern(id) + "/approve" }

// DisablePattern is the path to disable a rule at.
func DisablePattern(id uuid.UUID) string { return Pattern(id) + "/disable" }

// EditPattern is the path to change a rule at.
func EditPattern(id uuid.UUID) string { return Pattern(id) + "/edit" }

// DeletePattern is the path to delete a rule at.
func DeletePattern(id uuid.UUID) string { return Pattern(id) + "/delete" }

// PipelineVersion is the path of a saved version of the pipeline.
func PipelineVersion(version int) string { return PipelineHistory + "/" + strconv.Itoa(version) }

// Setting is where a setting of a module stands on the page of the pipeline, by its path
// in the configuration: "ipc.targetUtilization".
func Setting(path string) string {
	module, _, _ := strings.Cut(path, ".")
	return With(Pipeline, "module", module) + "#field-" + strings.ReplaceAll(path, ".", "-")
}

// RestorePipeline is the path to save a version of the pipeline again at.
func RestorePipeline(version int) string { return PipelineVersion(version) + "/restore" }

// Session is the path of a session.
func Session(id uuid.UUID) string { return Sessions + "/" + id.String() }

// SessionCount is where an open page reads how many requests a session has by now.
func SessionCount(id uuid.UUID) string { return Session(id) + "/count" }

// Request is the path of a request.
func Request(id uuid.UUID) string { return Requests + "/" + id.String() }

// SendRequestAgain is where a request is sent again.
func SendRequestAgain(id uuid.UUID) string { return Request(id) + "/again" }

// CompareRequests shows two requests side by side.
func CompareRequests(a, b uuid.UUID) string {
	return With(CompareWith, "a", a.String(), "b", b.String())
}

// Message is the path of a session's page where one message of a lane is open.
func Message(session, lane uuid.UUID, index int) string {
	return With(Session(session), "lane", lane.String(), "m", strconv.Itoa(index))
}

// Hit is the path of a session's page where a message is open that has what was looked for,
// first of the messages that one text stands for.
func Hit(session, lane uuid.UUID, index int, asked string) string {
	return With(Session(session), "lane", lane.String(), "m", strconv.Itoa(index), "o", strconv.Itoa(index), "q", asked)
}

// FindInSession is where a session's messages are searched.
func FindInSession(session uuid.UUID) string { return Session(session) + "/find" }

// OriginalBytes is the path of one archived message's bytes in the product API.
func OriginalBytes(session, lane uuid.UUID, index int) string {
	return With("/api/v1/sessions/"+session.String()+"/archive/"+strconv.Itoa(index), "lane", lane.String())
}

// With returns path with a query of names and values; an empty value is left out.
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

// Local returns next if it is a path of this site, and Overview otherwise: a link
// must not lead a person who logs in to another site.
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

// Export is where a whole session is downloaded, with what verifies it.
func Export(session uuid.UUID) string { return "/api/v1/sessions/" + session.String() + "/export" }

// ExportAs is where a session is downloaded in a form: ndjson, markdown or tar.
func ExportAs(session uuid.UUID, format string) string {
	return With(Export(session), "format", format)
}

// ExportOf is where several whole sessions are downloaded as one file.
func ExportOf(sessions []uuid.UUID) string {
	query := url.Values{}
	for _, id := range sessions {
		query.Add("id", id.String())
	}
	return "/api/v1/sessions/export?" + query.Encode()
}

// PinTurn is the path to keep turns of a session from being compressed at.
func PinTurn(session uuid.UUID) string { return Session(session) + "/pin" }

// ReleaseTurn is the path to let a turn be compressed again at.
func ReleaseTurn(session uuid.UUID) string { return Session(session) + "/release" }

// RestoreTurns is the path to put turns back into the next request at.
func RestoreTurns(session uuid.UUID) string { return Session(session) + "/restore" }

// CompactSession is the path to ask for an epoch at.
func CompactSession(session uuid.UUID) string { return Session(session) + "/compact" }

// StarSession is the path to star a session at.
func StarSession(session uuid.UUID) string { return Session(session) + "/star" }

// CommentOnSession is the path to comment on a session at.
func CommentOnSession(session uuid.UUID) string { return Session(session) + "/comments" }

// DeleteComment is the path to delete a comment on a session at.
func DeleteComment(session, comment uuid.UUID) string {
	return CommentOnSession(session) + "/" + comment.String() + "/delete"
}

// CompareSessions shows two sessions side by side.
func CompareSessions(a, b uuid.UUID) string {
	return With(CompareSessionsWith, "a", a.String(), "b", b.String())
}

// DeleteSession is the path to delete a session at.
func DeleteSession(session uuid.UUID) string { return Session(session) + "/delete" }

// SessionRequests is where the figures of a lane's requests are downloaded as CSV.
func SessionRequests(session, lane uuid.UUID) string {
	return With(Session(session)+"/requests.csv", "lane", lane.String())
}

// SessionEpochs is where the epochs of a lane are downloaded as CSV.
func SessionEpochs(session, lane uuid.UUID) string {
	return With(Session(session)+"/epochs.csv", "lane", lane.String())
}

// DocsPage returns the path of a page of the documentation.
func DocsPage(name string) string { return Docs + "/" + name }
