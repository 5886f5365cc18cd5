// Package modules is the list of the modules that are built in.
package modules

import (
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/tokens"
)

// Memory is what modules know beside the request. The zero value knows nothing.
type Memory struct {
	Past    compactionbridge.Past // histories that clients have left
	Archive rehydrator.Archive    // nil if none
	Learned *patterns.Shelf       // what teams have learnt; nil if none
}

// All returns the modules that are built in. Which of them run, and in which order,
// an exchange's config says.
func All(counter *tokens.Counter, memory Memory) []pipeline.Module {
	shortener := ipc.New(counter)
	return []pipeline.Module{
		shortener, compactionbridge.New(counter, memory.Past).Answering(shortener), rehydrator.New(memory.Archive),
		patterns.New(memory.Learned), semanticcache.New(),
	}
}
