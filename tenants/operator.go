package tenants

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The kinds of failure that come of what operators decide.
var (
	// ErrSuspended says that the operator has suspended the workspace.
	ErrSuspended = errors.New("workspace is suspended")
	// ErrNotFirst says that someone who had a place as the first person of an
	// installation only is not the first.
	ErrNotFirst = errors.New("someone signed up before")

	// ErrInviteOnly says that nobody signs up here without an invitation.
	ErrInviteOnly = errors.New("sign-up is by invitation")
	// ErrUnverified says that no owner of the workspace has a verified address, where
	// the installation asks for one.
	ErrUnverified = errors.New("no owner of the workspace has a verified address")
)

// Suspended is ErrSuspended with the reason that members read.
type Suspended struct{ Reason string }

// Error implements error.
func (e Suspended) Error() string { return ErrSuspended.Error() + ": " + e.Reason }

// Unwrap returns ErrSuspended.
func (e Suspended) Unwrap() error { return ErrSuspended }

// Suspension says since when and why a workspace is suspended.
type Suspension struct {
	Reason string
	Since  time.Time
}

// maxReason is how long the reason of a suspension may be, in bytes.
const maxReason = 500

// CheckReason returns the reason of a suspension as it is kept, or an Invalid.
func CheckReason(reason string) (string, error) {
	reason = strings.TrimSpace(reason)
	if reason == "" || len(reason) > maxReason {
		return "", Invalid{Field: "reason", Message: "must say why, in 1 to 500 characters; members read it"}
	}
	return reason, nil
}

// OperatedWorkspace is what an operator sees of a workspace: nothing of what was said
// there.
type OperatedWorkspace struct {
	ID           WorkspaceID
	Name         string
	CreatedAt    time.Time
	Owner        string // address of its first owner; empty: it has none
	Members      int64
	Exchanges    int64 // of the last 30 days, as are the next two
	Failures     int64 // of them
	Tokens       int64 // as providers reported them
	LastExchange *time.Time
	ArchiveBytes int64       // of all originals
	Suspension   *Suspension // nil if it is active
}

// OperatedQuery says which workspaces an operator wants to see, the newest first.
type OperatedQuery struct {
	Search   string    // part of a name or of the owner's address, or an id; empty: all
	BeforeAt time.Time // the last row of the page before; zero: from the start
	BeforeID WorkspaceID
	Limit    int
}

// OperatorEntry is something that an operator did.
type OperatorEntry struct {
	At     time.Time
	Actor  string // address of the operator; "command line"
	Action Action
	Target string // id of the workspace or person
	Name   string // of it, as it was then
	Reason string
}

// The actions of operators. The first two stand in the workspace's audit log too.
const (
	WorkspaceSuspended Action = "workspace.suspended"
	WorkspaceResumed   Action = "workspace.resumed"
	OperatorFirst      Action = "operator.first"
	OperatorAppointed  Action = "operator.appointed"
	// SubscriptionEnded and SubscriptionNotEnded say what became at Stripe of what a
	// deleted workspace had bought.
	SubscriptionEnded    Action = "subscription.ended"
	SubscriptionNotEnded Action = "subscription.not_ended"
)

// Check is one line of the installation's health.
type Check struct {
	Name string
	OK   bool
	Text string // what was found; never an address or a secret

	// Late says of a check that is not OK that the part works, but is slow or behind.
	Late bool
	// Means says what follows if the check is not OK, and what to do.
	Means string
}

// ReplicationLag is how far a standby of the database is behind.
type ReplicationLag struct {
	Standby string
	Seconds *float64 // nil if the standby is not connected
	Bytes   float64
}

// Operators is what an operator may see and do. Its methods return ErrNotFound for
// anyone else.
type Operators interface {
	// OperatedWorkspaces returns the workspaces that a query asks for, the newest first.
	OperatedWorkspaces(ctx context.Context, operator uuid.UUID, query OperatedQuery) ([]OperatedWorkspace, error)

	// OperatedWorkspace, SuspendWorkspace and ResumeWorkspace return ErrNotFound for a
	// workspace that does not exist.
	OperatedWorkspace(ctx context.Context, operator uuid.UUID, workspace WorkspaceID) (OperatedWorkspace, error)

	// SuspendWorkspace and ResumeWorkspace return an Invalid if the reason is missing.
	SuspendWorkspace(ctx context.Context, operator uuid.UUID, workspace WorkspaceID, reason string) error
	ResumeWorkspace(ctx context.Context, operator uuid.UUID, workspace WorkspaceID, reason string) error

	// OperatorLog returns what operators did, the newest first.
	OperatorLog(ctx context.Context, operator uuid.UUID, limit int) ([]OperatorEntry, error)
}
