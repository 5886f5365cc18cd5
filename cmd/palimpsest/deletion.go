package main

import (
	"context"
	"errors"
	"time"

	"palimpsest/tenants"

	"github.com/google/uuid"

	"palimpsest/billing"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants/deletion"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

const (
	jobDelete     jobs.Kind = "delete_workspace"
	deleteTimeout           = time.Hour // what is not removed by then is removed the next time
	deleteAgain             = time.Hour // for what is left when a job was abandoned
)

// deletion makes what deletes workspaces: at once from view, and then in the
// background.
func (p *program) deletion(db *tenantsdb.DB, people *identity.Service, bytes *archivedb.Mover, work *jobsdb.Runner, sold *billing.Service) *deletion.Service {
	service := deletion.New(deletion.Config{
		Store: db.Deletion, Bytes: bytes, Jobs: work, Log: p.log, Confirm: people.Confirm,
		Enqueue: func(ctx context.Context, workspace tenants.WorkspaceID) error {
			return errors.Join(sold.Leave(ctx, workspace), work.Enqueue(ctx, workspace, jobs.Job{Kind: jobDelete, Workspace: workspace}))
		},
	})
	work.Handle(jobDelete, jobs.Limits{Workers: 1, Timeout: deleteTimeout}, func(ctx context.Context, workspace tenants.WorkspaceID, _ uuid.UUID) error {
		return service.Work(ctx, workspace)
	})
	work.Every("delete_workspaces", deleteAgain, deleteTimeout, service.Pass)
	return service
}
