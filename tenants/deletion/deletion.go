// Package deletion removes a workspace: at once from everybody's view, and then,
// in the background, everything that is stored of it. Each step may be done twice,
// so that a process that dies over it leaves nothing behind but work for the next.
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
	// CloseWorkspace takes a workspace out of everybody's reach: its keys and logins
	// are gone on all replicas. then is done in the same transaction. It returns
	// tenants.ErrNotFound for a workspace that is closed already.
	CloseWorkspace(ctx context.Context, workspace tenants.WorkspaceID, then func(tenant tenants.Tenant) error) error

	// ClosedWorkspaces returns the workspaces of which something is left.
	ClosedWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error)

	// EraseSessions deletes what was said in a closed workspace but its archived
	// bytes, and its exchanges.
	EraseSessions(ctx context.Context, workspace tenants.WorkspaceID) error

	// EraseWorkspace deletes the rest of a closed workspace, whose archived bytes are
	// gone, and last of all the key under which everything was sealed.
	EraseWorkspace(ctx context.Context, workspace tenants.WorkspaceID) error
}

// Config is what a Service works with. All must be set.
type Config struct {
	Store Store
	Log   *slog.Logger

	// EraseBytes deletes all archived bytes of a workspace, wherever they are.
	EraseBytes func(ctx context.Context, workspace tenants.WorkspaceID) error

	// ForgetJobs deletes the jobs of a workspace, but those that are being done.
	ForgetJobs func(ctx context.Context, workspace tenants.WorkspaceID) error

	// Confirm returns tenants.ErrWrongLogin if the password is not the user's, or a
	// tenants.TooMany.
	Confirm func(ctx context.Context, user tenants.User, password, from string) error

	// Enqueue has Work called for a workspace later, if the tenant's transaction is
	// committed.
	Enqueue func(ctx context.Context, tenant tenants.Tenant) error
}

// Service deletes workspaces.
type Service struct{ config Config }

// New returns a Service.
func New(config Config) *Service { return &Service{config: config} }

// DeleteConfirmed is DeleteWorkspace for someone at an address who works in it, once they
// have typed its name and their password: what cannot be undone is asked twice. It returns
// a tenants.Invalid of name or password, or a tenants.TooMany.
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

// DeleteWorkspace takes a workspace out of everybody's reach and has the rest removed
// in the background. It returns tenants.ErrNotFound for a workspace that is deleted
// already.
func (s *Service) DeleteWorkspace(ctx context.Context, workspace tenants.WorkspaceID) error {
	err := s.config.Store.CloseWorkspace(ctx, workspace, func(tenant tenants.Tenant) error { return s.config.Enqueue(ctx, tenant) })
	if err != nil {
		return fmt.Errorf("delete workspace %s: %w", workspace, err)
	}
	actor := tenants.ActorOf(ctx)
	s.config.Log.InfoContext(ctx, "workspace deleted", "workspace", workspace, "user", actor.User, "address", actor.From)
	return nil
}

// Work removes everything that is left of a deleted workspace. It may be called again
// after any failure, and for a workspace of which nothing is left.
func (s *Service) Work(ctx context.Context, workspace tenants.WorkspaceID) error {
	closed, err := s.config.Store.ClosedWorkspaces(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(closed, workspace) {
		return nil // nothing is left of it, or it was never deleted
	}
	return s.erase(ctx, workspace)
}

// Pass removes what is left of all deleted workspaces: of those whose jobs were given
// up.
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
