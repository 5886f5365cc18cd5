package ledger

import (
	"slices"
	"strings"
)

// patchBegin starts a patch in Codex's form.
const patchBegin = "*** Begin Patch"

// apply reads a call that applies a patch: the operation of Responses' own tool, or a text.
func (c *Call) apply(args *arguments) {
	switch {
	case len(args.paths) == 0:
		c.patch(args.patch)
	case args.operation == "delete_file":
		c.Deletes = args.paths
	default:
		c.Writes = args.paths
	}
}

// patch reads the files that a text changes: Codex's "*** Update File: …", or the
// unified form.
func (c *Call) patch(patch string) {
	ofCodex := strings.Contains(patch, patchBegin)
	for line := range strings.Lines(patch) {
		switch {
		case ofCodex && strings.HasPrefix(line, "*** "):
			c.section(strings.TrimSpace(line[len("*** "):]))
		case !ofCodex && strings.HasPrefix(line, "+++ "):
			c.unified(line[len("+++ "):])
		}
	}
	if files := slices.Concat(c.Writes, c.Deletes); len(files) > 0 && c.Command == "" {
		c.Argument = strings.Join(files, " ")
	}
}

// section reads the line that starts a file's part of a patch.
func (c *Call) section(line string) {
	if path, ok := strings.CutPrefix(line, "Move to: "); ok && len(c.Writes) > 0 {
		c.Deletes = append(c.Deletes, c.Writes[len(c.Writes)-1])
		c.Writes[len(c.Writes)-1] = path
		return
	}
	for _, verb := range []string{"Update File: ", "Add File: "} {
		if path, ok := strings.CutPrefix(line, verb); ok {
			c.Writes = append(c.Writes, path)
		}
	}
	if path, ok := strings.CutPrefix(line, "Delete File: "); ok {
		c.Deletes = append(c.Deletes, path)
	}
}

// unified reads a line that names the new file of a unified diff.
func (c *Call) unified(name string) {
	name, _, _ = strings.Cut(strings.TrimSpace(name), "\t")
	if name != "/dev/null" && name != "" {
		c.Writes = append(c.Writes, strings.TrimPrefix(name, "b/"))
	}
}
