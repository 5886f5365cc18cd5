package tenantsdb

import (
	"palimpsest/tenants"
)

// StatementRejections and StatementHindrances ask what needs attention: for the tests of their
// plans.
const (
	StatementRejections = sqlRejections
	StatementHindrances = sqlHindrances
)

// ListStatement returns the statement by which a page of exchanges is read.
func ListStatement(workspace tenants.WorkspaceID, filter tenants.ExchangeFilter) (string, []any, error) {
	listing, err := newListing(workspace, tenants.Visible{All: true}, filter)
	if err != nil {
		return "", nil, err
	}
	statement, values := listing.statement()
	return statement, values, nil
}
