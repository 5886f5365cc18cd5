// Package modules is the list of the modules that are built in.
package modules

import (
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/patterns"
)

// All returns the modules that are built in; counter counts o200k tokens, and learned
// serves what teams have learnt (nil: nothing). Which of them run, and in which order,
// an exchange's config says.
func All(counter ipc.Counter, learned *patterns.Shelf) []pipeline.Module {
	return []pipeline.Module{ipc.New(counter), patterns.New(learned)}
}
