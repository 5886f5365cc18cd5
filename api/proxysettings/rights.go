package proxysettings

import (
	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// RightsOf returns how far the settings of an API key may go whose people have rights: text
// that they may not read does not come into its prompts.
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
