package ledger

import (
	"path"
	"slices"
	"strings"
)

// addFiles notes the files of a call that did its work.
func (l *Ledger) addFiles(place Place, call *Call) {
	written := call.Writes
	if call.current && l.open != "" {
		written = []string{l.open}
	}
	for _, name := range call.Reads {
		if file := l.file(place, name); file != nil {
			file.Read = place.Message
		}
	}
	for _, name := range written {
		if file := l.file(place, name); file != nil {
			file.Modified, file.Gone = place.Message, false
		}
	}
	for _, name := range call.Deletes {
		l.deleted(place, name)
	}
	if call.Command == "" && len(call.Reads)+len(call.Writes) == 1 {
		l.open = strings.Clone(slices.Concat(call.Reads, call.Writes)[0])
	}
}

// deleted notes that a file or a folder with all that we know in it is gone.
func (l *Ledger) deleted(place Place, name string) {
	folder := clean(name) + "/"
	inside := false
	for i := range l.Files {
		if file := &l.Files[i]; strings.HasPrefix(file.Path, folder) {
			file.Place, file.Deleted, file.Gone = place, place.Message, true
			inside = true
		}
	}
	if inside {
		return
	}
	if file := l.file(place, name); file != nil {
		file.Deleted, file.Gone = place.Message, true
	}
}

// maxPath bounds what counts as a file's name; Linux's own bound is 4096.
const maxPath = 1024

// file returns the entry of a file that a call touches, a new one if need be; nil
// if the name is not a file's.
func (l *Ledger) file(place Place, name string) *File {
	if name = clean(name); name == "" || name == "." || name == "/" || len(name) > maxPath {
		return nil
	}
	index, known := l.find(name)
	if !known {
		name = strings.Clone(name)
		index = len(l.Files)
		l.Files = append(l.Files, File{Path: name, Read: Never, Modified: Never, Deleted: Never})
		l.index(index)
	}
	file := &l.Files[index]
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

// find returns the entry of a path. A relative path and an absolute one that ends
// in it are one file; the newest such entry counts.
func (l *Ledger) find(name string) (index int, known bool) {
	if index, known = l.paths[name]; known {
		return index, true
	}
	absolute := path.IsAbs(name)
	for _, i := range slices.Backward(l.bases[base(name)]) {
		other := l.Files[i].Path
		switch {
		case absolute && !path.IsAbs(other) && strings.Contains(other, "/") && strings.HasSuffix(name, "/"+other):
			l.Files[i].Path = strings.Clone(name)
			l.paths[l.Files[i].Path] = i
			return i, true
		case !absolute && path.IsAbs(other) && strings.Contains(name, "/") && strings.HasSuffix(other, "/"+name):
			l.paths[strings.Clone(name)] = i
			return i, true
		}
	}
	return 0, false
}

// index makes an entry known by its path.
func (l *Ledger) index(i int) {
	name := l.Files[i].Path
	l.paths[name] = i
	l.bases[base(name)] = append(l.bases[base(name)], i)
}

// trimFiles drops the files that matter least where there are too many: those that
// were only read, then those changed longest ago.
func (l *Ledger) trimFiles() {
	if len(l.Files) <= maxFiles+maxFiles/8 {
		return
	}
	order := make([]int, len(l.Files))
	for i := range order {
		order[i] = i
	}
	weight := func(i int) int { return max(l.Files[i].Modified, l.Files[i].Deleted) }
	slices.SortStableFunc(order, func(a, b int) int {
		if by := weight(b) - weight(a); by != 0 {
			return by
		}
		return l.Files[b].Message - l.Files[a].Message
	})
	kept := order[:maxFiles]
	slices.Sort(kept)
	files := make([]File, len(kept))
	for n, i := range kept {
		files[n] = l.Files[i]
	}
	l.Files, l.paths, l.bases = files, map[string]int{}, map[string][]int{}
	for i := range l.Files {
		l.index(i)
	}
}
