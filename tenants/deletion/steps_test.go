package deletion_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"palimpsest/pipeline/faulttest"
	"palimpsest/tenants"
	"palimpsest/tenants/deletion"
)

// steps is a store of two workspaces in memory, and notes the parts of each that are erased.
type steps struct {
	t      *testing.T
	calls  *faulttest.Calls
	closed []tenants.WorkspaceID
	left   map[tenants.WorkspaceID][]string // parts that are not erased yet
	jobs   int
}

// parts are the parts of a workspace, in the order in which they may go: the row of the workspace and the
// key by which all of it was sealed go last.
var parts = []string{"sessions", "bytes", "jobs", "workspace"}

func (s *steps) CloseWorkspace(_ context.Context, workspace tenants.WorkspaceID, then func(tenant tenants.Tenant) error) error {
	return s.calls.Do(func() error {
		if slices.Contains(s.closed, workspace) {
			return tenants.ErrNotFound
		}
		jobs := s.jobs
		if err := then(workspace); err != nil {
			s.jobs = jobs
			return err
		}
		s.closed = append(s.closed, workspace)
		return nil
	})
}

func (s *steps) ClosedWorkspaces(context.Context) (closed []tenants.WorkspaceID, err error) {
	err = s.calls.Do(func() error {
		closed = slices.Clone(s.closed)
		return nil
	})
	return closed, err
}

// erase returns what erases a part.
func (s *steps) erase(part string) func(context.Context, tenants.WorkspaceID) error {
	return func(_ context.Context, workspace tenants.WorkspaceID) error {
		return s.calls.Do(func() error {
			left := s.left[workspace]
			if at := slices.Index(left, part); at > 0 {
				s.t.Errorf("%s of %s are erased before %s", part, workspace, left[0])
			}
			s.left[workspace] = slices.DeleteFunc(left, func(other string) bool { return other == part })
			if part == parts[len(parts)-1] {
				s.closed = slices.DeleteFunc(s.closed, func(other tenants.WorkspaceID) bool { return other == workspace })
			}
			return nil
		})
	}
}

func (s *steps) EraseSessions(ctx context.Context, workspace tenants.WorkspaceID) error {
	return s.erase(parts[0])(ctx, workspace)
}

func (s *steps) EraseWorkspace(ctx context.Context, workspace tenants.WorkspaceID) error {
	return s.erase(parts[3])(ctx, workspace)
}

// S28, S31: two workspaces are deleted, whichever step fails. No step is skipped or comes before the one that it
// depends on, one workspace does not wait for the other, and the next pass does the rest.
func TestDeletionGoesOnWhicheverStepFails(t *testing.T) {
	t.Parallel()
	faulttest.Walk(t, faulttest.Err, func(t *testing.T, calls *faulttest.Calls) {
		one, two := tenants.WorkspaceID{1}, tenants.WorkspaceID{2}
		store := &steps{t: t, calls: calls, left: map[tenants.WorkspaceID][]string{one: slices.Clone(parts), two: slices.Clone(parts)}}
		service := deletion.New(deletion.Config{
			Store: store, EraseBytes: store.erase(parts[1]), ForgetJobs: store.erase(parts[2]), Log: slog.New(slog.DiscardHandler),
			Enqueue: func(context.Context, tenants.Tenant) error {
				return calls.Do(func() error {
					store.jobs++
					return nil
				})
			},
		})
		failed := 0
		note := func(err error) {
			if err != nil && !errors.Is(err, tenants.ErrNotFound) {
				failed++
			}
		}
		for _, workspace := range []tenants.WorkspaceID{one, two} {
			note(service.DeleteWorkspace(t.Context(), workspace))
		}
		if store.jobs != len(store.closed) {
			t.Errorf("%d jobs for %d deleted workspaces", store.jobs, len(store.closed))
		}
		closed := len(store.closed)
		note(service.Pass(t.Context()))
		if calls.Fault() != nil && failed == 0 {
			t.Error("the failure is not returned")
		}
		if failed == 0 && len(store.closed) > 0 {
			t.Errorf("without a failure %d of %d deleted workspaces are not erased", len(store.closed), closed)
		}
		calls.Repair()
		for _, workspace := range []tenants.WorkspaceID{one, two} {
			if err := service.DeleteWorkspace(t.Context(), workspace); err != nil && !errors.Is(err, tenants.ErrNotFound) {
				t.Error(err)
			}
		}
		if err := service.Pass(t.Context()); err != nil || len(store.left[one])+len(store.left[two]) > 0 {
			t.Errorf("after the next pass %v are left, %v", store.left, err)
		}
	})
}

// S31: a workspace of which something cannot be erased keeps no other from being erased.
func TestWorkspaceThatCannotBeErasedStopsNoOther(t *testing.T) {
	t.Parallel()
	one, two := tenants.WorkspaceID{1}, tenants.WorkspaceID{2}
	store := &steps{t: t, closed: []tenants.WorkspaceID{one, two}, left: map[tenants.WorkspaceID][]string{one: slices.Clone(parts), two: slices.Clone(parts)}}
	erase := store.erase(parts[1])
	service := deletion.New(deletion.Config{
		Store: store, ForgetJobs: store.erase(parts[2]), Log: slog.New(slog.DiscardHandler),
		EraseBytes: func(ctx context.Context, workspace tenants.WorkspaceID) error {
			if workspace == one {
				return errDown
			}
			return erase(ctx, workspace)
		},
	})
	if err := service.Pass(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("the pass ends with %v", err)
	}
	if len(store.left[two]) > 0 || !slices.Equal(store.left[one], parts[1:]) {
		t.Errorf("left are %v", store.left)
	}
}
