package ipc_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/wire/anthropic"
)

// tool adds an answer that calls a tool with arguments in JSON, and its result.
func (c *talk) tool(name, arguments, result string) {
	c.calls++
	id := fmt.Sprintf("toolu_%d", c.calls)
	c.add(
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, id, name, arguments),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, id, quoted(result)),
	)
}

// What a later message says better goes before older results that still hold.
func TestStaleResultsGoFirst(t *testing.T) {
	t.Parallel()

	source := "package stale\n" + words(1_500)
	read := func(more string) string { return `{"file_path":"src/stale.go"` + more + `}` }
	edit := `{"file_path":"src/stale.go","old_string":"a","new_string":"b"}`
	for name, c := range map[string]struct {
		first, then func(*talk)
		stale       bool
	}{
		"edited since": {func(c *talk) { c.tool("Read", read(""), source) }, func(c *talk) { c.tool("Edit", edit, "Updated.") }, false},
		"written as a whole since": {
			func(c *talk) { c.tool("Read", read(""), source) },
			func(c *talk) { c.tool("Write", `{"file_path":"src/stale.go","content":"package stale"}`, "Written.") }, true,
		},
		"read again":             {func(c *talk) { c.tool("Read", read(""), source) }, func(c *talk) { c.tool("Read", read(""), "changed "+source) }, true},
		"a part read again":      {func(c *talk) { c.tool("Read", read(`,"offset":100,"limit":50`), source) }, func(c *talk) { c.tool("Read", read(`,"offset":50,"limit":200`), source+"x") }, true},
		"only a part read again": {func(c *talk) { c.tool("Read", read(""), source) }, func(c *talk) { c.tool("Read", read(`,"offset":50,"limit":200`), source+"x") }, false},
		"no change since": {
			func(c *talk) { c.tool("Read", read(""), source) },
			func(c *talk) { c.tool("Read", read(""), "File unchanged since last read.") }, false,
		},
		"an edit that failed":                        {func(c *talk) { c.tool("Read", read(""), source) }, func(c *talk) { c.tool("Edit", edit, "Error: not found") }, false},
		"another file":                               {func(c *talk) { c.tool("Read", read(""), source) }, func(c *talk) { c.tool("Edit", strings.ReplaceAll(edit, "stale", "other"), "Updated.") }, false},
		"the same output again":                      {func(c *talk) { c.run("make", source) }, func(c *talk) { c.run("make", source) }, true},
		"an output, which is worth less than a file": {func(c *talk) { c.run("make", source) }, func(c *talk) { c.run("make", "other "+source) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			talk := (&talk{}).user("Hello.").run("cat kept.txt", "KEPT "+words(1_500))
			c.first(talk)
			talk.run("true", "ok")
			c.then(talk)
			talk.user("Go on.").run("cat newest", words(3_000))
			size := pipelinetest.NewExchange(t, anthropic.New(), talk.body(), pipelinetest.Options{Counter: newCounter(t)}).Size(nil)
			// An eighth of the prompt has to go: one of the two is enough.
			_, sealed := epoch(t, talk.body(), size*10/7, small, func(config *ipc.Config) {
				config.TargetUtilization, config.CompressTo, config.MinClear = 0.69, 0.61, 0.02
			})
			kept := quoted("KEPT " + words(1_500))
			if c.stale {
				holds(t, sealed, kept, "characters archived as #4 of archive ")
				return
			}
			lacks(t, sealed, kept)
			holds(t, sealed, "characters archived as #2 of archive ")
		})
	}
}
