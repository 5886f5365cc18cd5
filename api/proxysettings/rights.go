package proxysettings

import (
	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// RightsOf returns the limits for the settings of an API key, given the rights of its people. Text that they
// may not read does not enter its prompts.
func RightsOf(rights tenants.KeyRights) pipeline.Rights {
	bound := pipeline.Rights{Scope: pipeline.ScopeSession}
	switch rights.Reads {
	case tenants.ReadsAll:
		bound.Scope = pipeline.ScopeWorkspace
	case tenants.ReadsOwn:
		bound.Scope = pipeline.ScopePerson
	case tenants.ReadsNone:
	}
	return bound
}
