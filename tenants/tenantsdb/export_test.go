package tenantsdb

import (
	"github.com/google/uuid"

	"palimpsest/tenants"
)

// ListStatement returns the statement by which a page of exchanges is read.
func ListStatement(workspace uuid.UUID, filter tenants.ExchangeFilter) (string, []any, error) {
	listing, err := newListing(workspace, filter)
	if err != nil {
		return "", nil, err
	}
	statement, values := listing.statement()
	return statement, values, nil
}
