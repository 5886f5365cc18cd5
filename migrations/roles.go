package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The roles that own the functions with more rights than their callers.
const (
	searchRole   = "palimpsest_search"
	operatorRole = "palimpsest_operator"
)

// Roles lists the roles with grants in the schema.
func Roles() []string { return []string{appRole, operatorRole, searchRole, workerRole} }

// OwnedFunction is a function that a role owns instead of the database's owner.
type OwnedFunction struct {
	Signature string // name and types of its arguments, as ALTER FUNCTION takes it
	Role      string
	Called    bool // the database's owner may call it too
}

// OwnedFunctions returns the functions of a database that a special role owns, or must own after a restore.
// If the owner could not create a role, the schema has no policies for it, and the owner owns the functions.
func OwnedFunctions(ctx context.Context, tx pgx.Tx) ([]OwnedFunction, error) {
	rows, err := tx.Query(ctx, `SELECT p.oid::regprocedure::text, o.role, p.proname = 'appoint_operator'
		FROM (SELECT $1, unnest(ARRAY['search_documents', 'search_within']) UNION ALL SELECT $2, unnest(ARRAY['appoint_operator', 'archive_waits_since', 'claim_operator', 'note_subscription_end',
			'operator_log', 'operator_suspend', 'operator_workspaces', 'workspace_standing'])) AS o (role, name)
		JOIN pg_proc p ON p.proname = o.name AND p.pronamespace = 'public'::regnamespace
		WHERE EXISTS (SELECT FROM pg_policies WHERE schemaname = 'public' AND o.role = ANY (roles)) ORDER BY 1`, searchRole, operatorRole)
	if err != nil {
		return nil, fmt.Errorf("look up functions with owners of their own: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[OwnedFunction])
}
