// Package modules is the list of the built-in modules.
package modules

import (
	"sync"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/tokens"
)

// Memory is the modules' sources besides the request. The zero value disables all of them.
type Memory struct {
	Past    compactionbridge.Past // histories that clients have left
	Archive archive.Searcher      // optional
	Learned *patterns.Cache       // approved patterns of teams; optional
}

// module is a built-in module: its description and its constructor.
type module struct {
	description func() pipeline.Description
	make        func(*tokens.Counter, Memory) pipeline.Module
}

// list is the one place that names all modules, in the order in which they usually run.
func list() []module {
	return []module{
		{ipc.Description, func(counter *tokens.Counter, _ Memory) pipeline.Module { return ipc.New(counter.Message) }},
		{compactionbridge.Description, func(counter *tokens.Counter, memory Memory) pipeline.Module {
			return compactionbridge.New(counter, memory.Past).Answering(ipc.New(counter.Message).Notes)
		}},
		{rehydrator.Description, func(_ *tokens.Counter, memory Memory) pipeline.Module { return rehydrator.New(memory.Archive) }},
		{patterns.Description, func(_ *tokens.Counter, memory Memory) pipeline.Module { return patterns.New(memory.Learned) }},
		{semanticcache.Description, func(*tokens.Counter, Memory) pipeline.Module { return semanticcache.New() }},
	}
}

// All returns the built-in modules. An exchange's config decides which of them run, and in which
// order.
func All(counter *tokens.Counter, memory Memory) []pipeline.Module {
	var all []pipeline.Module
	for _, module := range list() {
		all = append(all, module.make(counter, memory))
	}
	return all
}

// Catalog returns the descriptions of all modules, which define how configs are read, checked,
// shown and described.
func Catalog() *pipeline.Catalog { return catalog() }

var catalog = sync.OnceValue(func() *pipeline.Catalog { //nolint:gochecknoglobals // never changed
	var all []pipeline.Description
	for _, module := range list() {
		all = append(all, module.description())
	}
	return pipeline.NewCatalog(all...)
})
