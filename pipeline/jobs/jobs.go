// Package jobs defines work off the request path: jobs that outlive the process, run once for all replicas,
// and are retried after a failure. jobsdb keeps and runs them.
//
// A job only names a workspace and a lane. Its handler reads everything else from storage under row-level
// security. Jobs must be idempotent, because a process may die during one and another then starts it again.
package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Kind names a sort of work. Letters, digits and underscores only.
type Kind string

// Job is work for a lane of a workspace. A lane has at most one waiting or running job of each kind. A second
// one is dropped.
type Job struct {
	Kind      Kind
	Workspace tenants.WorkspaceID
	Lane      uuid.UUID // uuid.Nil means the whole workspace
	At        time.Time // earliest start; zero means now
}

// Queue takes jobs.
type Queue interface {
	// Enqueue keeps jobs of one workspace. In a tenant's transaction they are kept only if it commits. Jobs
	// of a kind without a handler are refused.
	Enqueue(ctx context.Context, tenant tenants.Tenant, jobs ...Job) error
}

// Handler does the work of one job. Its context ends with the kind's deadline and with the program. After an
// error the job is retried until it has had its kind's maximum attempts. After a Snooze it comes back without
// counting as an attempt.
type Handler func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) error

// Snooze is the error of a handler whose job should run again at a later time. It is not a failure and does
// not count as an attempt.
type Snooze struct{ At time.Time }

// Error implements error.
func (a Snooze) Error() string { return "again at " + a.At.Format(time.RFC3339) }

// Limits bound the work of a kind.
type Limits struct {
	Workers  int           // in parallel in one process; 0 means 2
	Timeout  time.Duration // for one job; 0 means a minute
	Attempts int           // before a job is abandoned; 0 means 5
}

// Interval is the interval of shared work.
type Interval struct {
	Least time.Duration // between two passes, even if woken
	Most  time.Duration // between two passes without a wake
}
