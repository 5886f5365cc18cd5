// Package access says what each role may do in the dashboard.
package access

import (
	"errors"

	"palimpsest/tenants"
)

// ErrDenied says that somebody's role does not allow what they asked for.
var ErrDenied = errors.New("role does not allow this")

// MayTune reports whether a role may change what concerns everybody: the pipeline
// and the provider keys.
func MayTune(role tenants.Role) bool { return role == tenants.Owner || role == tenants.Admin }

// MayCreateKeys reports whether a role may create API keys.
func MayCreateKeys(role tenants.Role) bool { return MayTune(role) || role == tenants.Regular }

// MayRevoke reports whether somebody may revoke a key: members their own only.
func MayRevoke(who tenants.Principal, key tenants.APIKey) bool {
	return MayTune(who.Role) || who.Role == tenants.Regular && key.CreatedBy == who.User.ID
}

// MayReadTexts reports whether a role may read what was said in sessions.
func MayReadTexts(role tenants.Role) bool { return MayCreateKeys(role) }

// Check returns ErrDenied unless allowed.
func Check(allowed bool) error {
	if !allowed {
		return ErrDenied
	}
	return nil
}
