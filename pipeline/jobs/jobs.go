// Package jobs says what work off the request path is: jobs that outlive the
// process, run once for all replicas, and are tried again when they fail. jobsdb
// keeps and runs them.
//
// A job names a workspace and a lane and holds nothing else: anyone who runs it reads
// what it needs from where that is kept under row-level security. Its work may be
// begun twice (a process may die over it) and must come to the same then.
package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Kind names a sort of work. Letters, digits and underscores only.
type Kind string

// Job is work that waits for a lane of a workspace. Of each kind a lane has at most
// one job that waits or runs; another one for it comes to nothing.
type Job struct {
	Kind      Kind
	Workspace tenants.WorkspaceID
	Lane      uuid.UUID // uuid.Nil: of the whole workspace
	At        time.Time // not to be begun before; zero: now
}

// Queue takes jobs.
type Queue interface {
	// Enqueue keeps jobs of one workspace. In a transaction of the tenant they are there
	// if it is committed, and not otherwise. Jobs of kinds that nobody handles are refused.
	Enqueue(ctx context.Context, tenant tenants.Tenant, jobs ...Job) error
}

// Handler does the work of one job. Its context ends with the kind's deadline and
// with the program. An error has the job tried again later, until it has been tried
// as often as its kind allows; Again has it come back without that.
type Handler func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) error

// Snooze is the error of a handler whose job is to come back at a later time. It is no
// failure and does not count as an attempt.
type Snooze struct{ At time.Time }

// Error implements error.
func (a Snooze) Error() string { return "again at " + a.At.Format(time.RFC3339) }

// Limits bound the work of a kind.
type Limits struct {
	Workers  int           // jobs at once in one process; 0: 2
	Timeout  time.Duration // for one job; 0: a minute
	Attempts int           // before a job is abandoned; 0: 5
}

// Interval is how often work comes that all processes share.
type Interval struct {
	Least time.Duration // between two passes, however often it is woken
	Most  time.Duration // when it is not woken
}
