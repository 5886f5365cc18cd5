// Package deletion removes a workspace: it becomes inaccessible at once, and a background job then deletes
// its data. Each step may run twice, so that the next process can resume after a crash.
package deletion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"palimpsest/tenants"
)

// Store keeps workspaces.
type Store interface {
	// CloseWorkspace makes a workspace inaccessible: its keys and logins end on all replicas. then runs in
	// the same transaction. It returns tenants.ErrNotFound if the workspace is closed already.
	CloseWorkspace(ctx context.Context, workspace tenants.WorkspaceID, then func(tenant tenants.Tenant) error) error

	// ClosedWorkspaces returns the workspaces with remaining data.
	ClosedWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error)

	// EraseSessions deletes the sessions and exchanges of a closed workspace, except archived bytes.
	EraseSessions(ctx context.Context, workspace tenants.WorkspaceID) error

	// EraseWorkspace deletes the rest of a closed workspace without archived bytes, and finally its data key.
	EraseWorkspace(ctx context.Context, workspace tenants.WorkspaceID) error
}

// Config holds the dependencies of a Service. All fields are required.
type Config struct {
	Store Store
	Log   *slog.Logger

	// EraseBytes deletes all archived bytes of a workspace, wherever they are.
	EraseBytes func(ctx context.Context, workspace tenants.WorkspaceID) error

	// ForgetJobs deletes a workspace's jobs, except running ones.
	ForgetJobs func(ctx context.Context, workspace tenants.WorkspaceID) error

	// Confirm returns tenants.ErrWrongLogin if the password is not the user's, or a
	// tenants.TooMany.
	Confirm func(ctx context.Context, user tenants.User, password, from string) error

	// Enqueue schedules Work for a workspace, if the tenant's transaction is committed.
	Enqueue func(ctx context.Context, tenant tenants.Tenant) error
}

// Service deletes workspaces.
type Service struct{ config Config }

// New returns a Service.
func New(config Config) *Service { return &Service{config: config} }

// DeleteConfirmed is DeleteWorkspace for a member at an address, after they have typed the workspace's name
// and their password. It asks for both because deletion cannot be undone. It returns a tenants.Invalid for
// name or password, or a tenants.TooMany.
func (s *Service) DeleteConfirmed(ctx context.Context, who tenants.Principal, name, password, from string) error {
	if name != who.Workspace.Name {
		return tenants.Invalid{Field: "name", Message: "must be the name of the workspace, letter for letter"}
	}
	err := s.config.Confirm(ctx, who.User, password, from)
	if errors.Is(err, tenants.ErrWrongLogin) {
		return tenants.Invalid{Field: "password", Message: "is not the password of your account"}
	}
	if err != nil {
		return err
	}
	return s.DeleteWorkspace(ctx, who.Workspace.ID)
}

// DeleteWorkspace makes a workspace inaccessible and deletes the rest in the background. It returns
// tenants.ErrNotFound if the workspace is deleted already.
func (s *Service) DeleteWorkspace(ctx context.Context, workspace tenants.WorkspaceID) error {
	err := s.config.Store.CloseWorkspace(ctx, workspace, func(tenant tenants.Tenant) error { return s.config.Enqueue(ctx, tenant) })
	if err != nil {
		return fmt.Errorf("delete workspace %s: %w", workspace, err)
	}
	actor := tenants.ActorOf(ctx)
	s.config.Log.InfoContext(ctx, "workspace deleted", "workspace", workspace, "user", actor.User, "address", actor.From)
	return nil
}

// Work deletes all remaining data of a deleted workspace. It may be called again after a failure, and for a
// workspace without remaining data.
func (s *Service) Work(ctx context.Context, workspace tenants.WorkspaceID) error {
	closed, err := s.config.Store.ClosedWorkspaces(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(closed, workspace) {
		return nil // it has no remaining data, or was never deleted
	}
	return s.erase(ctx, workspace)
}

// Pass deletes remaining data of all deleted workspaces, because some of their jobs may have been abandoned.
func (s *Service) Pass(ctx context.Context) error {
	closed, err := s.config.Store.ClosedWorkspaces(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, workspace := range closed {
		failures = append(failures, s.erase(ctx, workspace))
	}
	return errors.Join(failures...)
}

func (s *Service) erase(ctx context.Context, workspace tenants.WorkspaceID) error {
	for _, step := range []struct {
		name string
		do   func(context.Context, tenants.WorkspaceID) error
	}{
		{"sessions", s.config.Store.EraseSessions},
		{"archived bytes", s.config.EraseBytes},
		{"jobs", s.config.ForgetJobs},
		{"the rest", s.config.Store.EraseWorkspace},
	} {
		if err := step.do(ctx, workspace); err != nil {
			return fmt.Errorf("erase %s of workspace %s: %w", step.name, workspace, err)
		}
	}
	s.config.Log.InfoContext(ctx, "workspace erased", "workspace", workspace)
	return nil
}
