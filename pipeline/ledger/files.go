package ledger

import (
	"path"
	"slices"
	"strings"
)

// fileTable holds a lane's actions on files, indexed by their names.
type fileTable struct {
	Files []File

	paths map[string]int   // path → index in Files
	bases map[string][]int // last element of a path → indexes in Files
	open  string           // the file that an editor with a current file has open
}

// newFileTable returns a table of known files.
func newFileTable(files []File) fileTable {
	t := fileTable{Files: files, paths: map[string]int{}, bases: map[string][]int{}}
	for i := range files {
		t.index(i)
	}
	return t
}

// addFiles notes the files of a successful call.
func (t *fileTable) addFiles(place Place, call *Call) {
	written := call.Writes
	if call.current && t.open != "" {
		written = []string{t.open}
	}
	for _, name := range call.Reads {
		if file := t.file(place, name); file != nil {
			file.Read = place.Message
		}
	}
	for _, name := range written {
		if file := t.file(place, name); file != nil {
			file.Modified, file.Gone = place.Message, false
		}
	}
	for _, name := range call.Deletes {
		t.deleted(place, name)
	}
	if call.Command == "" && len(call.Reads)+len(call.Writes) == 1 {
		t.open = strings.Clone(slices.Concat(call.Reads, call.Writes)[0])
	}
}

// deleted notes that a file, or a folder with all known files in it, is gone.
func (t *fileTable) deleted(place Place, name string) {
	folder := clean(name) + "/"
	inside := false
	for i := range t.Files {
		if file := &t.Files[i]; strings.HasPrefix(file.Path, folder) {
			file.Place, file.Deleted, file.Gone = place, place.Message, true
			inside = true
		}
	}
	if inside {
		return
	}
	if file := t.file(place, name); file != nil {
		file.Deleted, file.Gone = place.Message, true
	}
}

// maxPath bounds a file's name; Linux's own bound is 4096.
const maxPath = 1024

// file returns the entry of a file that a call touches, or a new one; nil if the name is not a
// file's.
func (t *fileTable) file(place Place, name string) *File {
	if name = clean(name); name == "" || name == "." || name == "/" || len(name) > maxPath {
		return nil
	}
	index, known := t.find(name)
	if !known {
		name = strings.Clone(name)
		index = len(t.Files)
		t.Files = append(t.Files, File{Path: name, Read: Never, Modified: Never, Deleted: Never})
		t.index(index)
	}
	file := &t.Files[index]
	file.Place = place
	return file
}

// clean returns a path in its shortest form.
func clean(name string) string {
	name = strings.TrimSpace(name)
	if name == "" || strings.ContainsAny(name, "\n\x00") {
		return ""
	}
	if plain := !strings.Contains(name, "//") && !strings.Contains(name, "./") && !strings.HasSuffix(name, "/"); plain {
		return name
	}
	return path.Clean(name)
}

// find returns the entry of a path. A relative path and an absolute one that ends in it are one
// file; the newest such entry counts.
func (t *fileTable) find(name string) (index int, known bool) {
	if index, known = t.paths[name]; known {
		return index, true
	}
	absolute := path.IsAbs(name)
	for _, i := range slices.Backward(t.bases[base(name)]) {
		other := t.Files[i].Path
		switch {
		case absolute && !path.IsAbs(other) && strings.Contains(other, "/") && strings.HasSuffix(name, "/"+other):
			t.Files[i].Path = strings.Clone(name)
			t.paths[t.Files[i].Path] = i
			return i, true
		case !absolute && path.IsAbs(other) && strings.Contains(name, "/") && strings.HasSuffix(other, "/"+name):
			t.paths[strings.Clone(name)] = i
			return i, true
		}
	}
	return 0, false
}

// index indexes an entry by its path.
func (t *fileTable) index(i int) {
	name := t.Files[i].Path
	t.paths[name] = i
	t.bases[base(name)] = append(t.bases[base(name)], i)
}

// trimFiles drops the least important files if there are too many: those that were only read, then
// those with the oldest changes.
func (t *fileTable) trimFiles() {
	if len(t.Files) <= maxFiles+maxFiles/8 {
		return
	}
	order := make([]int, len(t.Files))
	for i := range order {
		order[i] = i
	}
	weight := func(i int) int { return max(t.Files[i].Modified, t.Files[i].Deleted) }
	slices.SortStableFunc(order, func(a, b int) int {
		if by := weight(b) - weight(a); by != 0 {
			return by
		}
		return t.Files[b].Message - t.Files[a].Message
	})
	kept := order[:maxFiles]
	slices.Sort(kept)
	files := make([]File, len(kept))
	for n, i := range kept {
		files[n] = t.Files[i]
	}
	open := t.open
	*t = newFileTable(files)
	t.open = open
}

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
