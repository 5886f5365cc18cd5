// Package modules is the list of the modules that are built in.
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

// Memory is what modules know beside the request. The zero value knows nothing.
type Memory struct {
	Past    compactionbridge.Past // histories that clients have left
	Archive archive.Searcher      // nil if none
	Learned *patterns.Cache       // what teams have learned; nil if none
}

// module is a module of the product: what it says of itself, and how it is made.
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

// All returns the modules that are built in. Which of them run, and in which order,
// an exchange's config says.
func All(counter *tokens.Counter, memory Memory) []pipeline.Module {
	var all []pipeline.Module
	for _, module := range list() {
		all = append(all, module.make(counter, memory))
	}
	return all
}

// Catalog returns what all modules say of themselves, by which configs are read, checked,
// shown and described.
func Catalog() *pipeline.Catalog { return catalog() }

var catalog = sync.OnceValue(func() *pipeline.Catalog { //nolint:gochecknoglobals // never changed
	var all []pipeline.Description
	for _, module := range list() {
		all = append(all, module.description())
	}
	return pipeline.NewCatalog(all...)
})
