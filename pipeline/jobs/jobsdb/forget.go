package jobsdb

import (
	"context"
	"fmt"

	"palimpsest/tenants"
)

// Forget deletes the jobs of a workspace, also those that are done, but not those
// that are being done: their rows go with River's own retention.
func (r *Runner) Forget(ctx context.Context, workspace tenants.WorkspaceID) error {
	_, err := r.config.Pool.Exec(ctx, "DELETE FROM "+schema+".river_job WHERE args->>'workspace' = $1 AND state <> 'running'", workspace.String())
	if err != nil {
		return fmt.Errorf("forget jobs of workspace %s: %w", workspace, err)
	}
	return nil
}
