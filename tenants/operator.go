package tenants

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Errors that result from operators' decisions.
var (
	// ErrSuspended says that the operator has suspended the workspace.
	ErrSuspended = errors.New("workspace is suspended")
	// ErrNotFirst says that a sign-up that was allowed for the first person of an installation only is not
	// the first.
	ErrNotFirst = errors.New("someone signed up before")

	// ErrInviteOnly says that sign-up needs an invitation.
	ErrInviteOnly = errors.New("sign-up is by invitation")
	// ErrUnverified says that no owner of the workspace has a verified address, although the installation
	// requires one.
	ErrUnverified = errors.New("no owner of the workspace has a verified address")
)

// Suspended is ErrSuspended with the reason for members.
type Suspended struct{ Reason string }

// Error implements error.
func (e Suspended) Error() string { return ErrSuspended.Error() + ": " + e.Reason }

// Unwrap returns ErrSuspended.
func (e Suspended) Unwrap() error { return ErrSuspended }

// Suspension is the start and the reason of a workspace's suspension.
type Suspension struct {
	Reason string
	Since  time.Time
}

// maxReason bounds the reason of a suspension, in bytes.
const maxReason = 500

// CheckReason returns the reason of a suspension in its stored form, or an Invalid.
func CheckReason(reason string) (string, error) {
	reason = strings.TrimSpace(reason)
	if reason == "" || len(reason) > maxReason {
		return "", Invalid{Field: "reason", Message: "must say why, in 1 to 500 characters; members read it"}
	}
	return reason, nil
}

// OperatedWorkspace is an operator's view of a workspace, without session text.
type OperatedWorkspace struct {
	ID           WorkspaceID
	Name         string    `gorm:"column:workspace_name"`
	CreatedAt    time.Time `gorm:"column:created"`
	Owner        string    // address of its first owner; "" without an owner
	Members      int64     `gorm:"column:member_count"`
	Exchanges    int64     `gorm:"column:exchange_count"` // of the last 30 days, as are the next two
	Failures     int64     `gorm:"column:failure_count"`  // of them
	Tokens       int64     `gorm:"column:token_count"`    // as providers reported them
	LastExchange *time.Time
	ArchiveBytes int64       `gorm:"column:archived"` // of all originals
	Suspension   *Suspension `gorm:"-"`               // nil if it is active
}

// OperatedQuery selects the workspaces in an operator's list, the newest first.
type OperatedQuery struct {
	Search   string    // part of a name or of the owner's address, or an id; empty: all
	BeforeAt time.Time // the last row of the page before; zero: from the start
	BeforeID WorkspaceID
	Limit    int
}

// OperatorEntry is an operator's action.
type OperatorEntry struct {
	At     time.Time
	Actor  string // address of the operator; "command line"
	Action Action
	Target string // id of the workspace or person
	Name   string // its name at that time
	Reason string
}

// The actions of operators. The first two also appear in the workspace's audit log.
const (
	WorkspaceSuspended Action = "workspace.suspended"
	WorkspaceResumed   Action = "workspace.resumed"
	OperatorFirst      Action = "operator.first"
	OperatorAppointed  Action = "operator.appointed"
	// SubscriptionEnded and SubscriptionNotEnded record whether a deleted workspace's subscription was ended
	// at Stripe.
	SubscriptionEnded    Action = "subscription.ended"
	SubscriptionNotEnded Action = "subscription.not_ended"
)

// Check is one line of the installation's health.
type Check struct {
	Name string
	OK   bool
	Text string // the result; never an address or a secret

	// Late means that a part whose check failed works, but is slow or behind.
	Late bool
	// Means describes the effect of a failed check, and the remedy.
	Means string
}

// ReplicationLag is the lag of a standby of the database.
type ReplicationLag struct {
	Standby string
	Seconds *float64 // nil if the standby is not connected
	Bytes   float64
}

// Operators is the operators' view of the installation. Its methods return ErrNotFound for other users.
type Operators interface {
	// OperatedWorkspaces returns the workspaces of a query, the newest first.
	OperatedWorkspaces(ctx context.Context, operator uuid.UUID, query OperatedQuery) ([]OperatedWorkspace, error)

	// OperatedWorkspace, SuspendWorkspace and ResumeWorkspace return ErrNotFound for an unknown workspace.
	OperatedWorkspace(ctx context.Context, operator uuid.UUID, workspace WorkspaceID) (OperatedWorkspace, error)

	// SuspendWorkspace and ResumeWorkspace return an Invalid if the reason is missing.
	SuspendWorkspace(ctx context.Context, operator uuid.UUID, workspace WorkspaceID, reason string) error
	ResumeWorkspace(ctx context.Context, operator uuid.UUID, workspace WorkspaceID, reason string) error

	// OperatorLog returns the operators' actions, the newest first.
	OperatorLog(ctx context.Context, operator uuid.UUID, limit int) ([]OperatorEntry, error)
}
