package main

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"palimpsest/billing"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
	"palimpsest/tenants/deletion"
	"palimpsest/tenants/identity"
)

const (
	jobDelete     jobs.Kind = "delete_workspace"
	deleteTimeout           = time.Hour // the next job removes the rest
	deleteAgain             = time.Hour // to remove the rest of an abandoned job
)

// newDeletion creates the service that deletes workspaces: hidden at once, then removed in the background.
func newDeletion(b base, people *identity.Service, bytes *archivedb.Mover, sold *billing.Service) *deletion.Service {
	service := deletion.New(deletion.Config{
		Store: b.db.Deletion, EraseBytes: bytes.Erase, ForgetJobs: b.work.Forget, Log: b.Log, Confirm: people.Confirm,
		Enqueue: func(ctx context.Context, tenant tenants.Tenant) error {
			return errors.Join(sold.Leave(ctx, tenant), b.work.Enqueue(ctx, tenant, jobs.Job{Kind: jobDelete, Workspace: tenant.Workspace()}))
		},
	})
	b.work.Handle(jobDelete, jobs.Limits{Workers: 1, Timeout: deleteTimeout}, func(ctx context.Context, workspace tenants.WorkspaceID, _ uuid.UUID) error {
		return service.Work(ctx, workspace)
	})
	b.work.Every("delete_workspaces", deleteAgain, deleteTimeout, service.Pass)
	return service
}
