// Package modules is the list of the modules that are built in.
package modules

import (
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
)

// Counter counts o200k tokens.
type Counter interface {
	ipc.Counter
	compactionbridge.Counter
}

// All returns the modules that are built in; counter counts o200k tokens, past is
// where the histories are found that clients have left. Which modules run, and in
// which order, an exchange's config says.
func All(counter Counter, past compactionbridge.Past) []pipeline.Module {
	return []pipeline.Module{ipc.New(counter), compactionbridge.New(counter, past)}
}
