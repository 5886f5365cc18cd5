package jobsdb

import (
	"context"
	"fmt"

	"palimpsest/tenants"
)

// Forget deletes the jobs of a workspace, including finished ones. It leaves running jobs: River's retention
// removes their rows.
func (r *Runner) Forget(ctx context.Context, workspace tenants.WorkspaceID) error {
	_, err := r.config.Pool.Exec(ctx, "DELETE FROM "+schema+".river_job WHERE args->>'workspace' = $1 AND state <> 'running'", workspace.String())
	if err != nil {
		return fmt.Errorf("forget jobs of workspace %s: %w", workspace, err)
	}
	return nil
}
