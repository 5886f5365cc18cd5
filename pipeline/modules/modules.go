// Package modules is the list of the modules that are built in.
package modules

import (
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/semanticcache"
)

// All returns the modules that are built in; counter counts o200k tokens. Which
// of them run, and in which order, an exchange's config says.
func All(counter ipc.Counter) []pipeline.Module {
	return []pipeline.Module{ipc.New(counter), semanticcache.New()}
}
