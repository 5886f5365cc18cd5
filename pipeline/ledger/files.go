package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// addFiles notes the files of a call that did its work.
func (l *Ledger) addFiles(place Place, call *Call, result *conversation.Block) {
	written := call.Writes
	if call.current && l.open != "" {
		written = []string{l.open}
	}
	for _, name := range call.Reads {
		if file := l.file(place, name); file != nil {
			file.Read, file.whole = place.Message, ""
			if len(call.Reads) == 1 && call.Command == "" && !call.Partial && result != nil && len(result.Media) == 0 {
				file.whole, file.isShown = result.Text, true
			}
		}
	}
	for _, name := range written {
		if file := l.file(place, name); file != nil {
			file.Modified, file.Gone, file.whole = place.Message, false, ""
			if call.Content != "" && len(written) == 1 {
				file.whole, file.isShown = call.Content, false
			}
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
			file.Place, file.Deleted, file.Gone, file.whole = place, place.Message, true, ""
			inside = true
		}
	}
	if inside {
		return
	}
	if file := l.file(place, name); file != nil {
		file.Deleted, file.Gone, file.whole = place.Message, true, ""
	}
}

// maxPath bounds what counts as a file's name; Linux's own bound is 4096.
const maxPath = 1024

// file returns the entry of a file that a call touches, a new one if need be; nil
// if the name is none.
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

// Hash returns the first 16 hex digits of the SHA-256 of the file's whole content as
// the lane last saw or wrote it, without line numbers and the newlines at its end;
// empty where only a part was read, or changed since.
func (f *File) Hash() string {
	switch {
	case f.whole == "":
		return ""
	case f.isShown:
		return hashOf(unnumbered(f.whole))
	default:
		return hashOf(f.whole)
	}
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(strings.TrimRight(content, "\n")))
	return hex.EncodeToString(sum[:8])
}

// unnumbered returns the content that a read shows: without line numbers and without
// what the client puts behind it, so that a file that was written and then read
// whole has one hash.
func unnumbered(shown string) string {
	if i := strings.LastIndex(shown[max(0, len(shown)-tailBytes):], "\n<system-reminder>"); i >= 0 {
		shown = shown[:max(0, len(shown)-tailBytes)+i]
	}
	if numberEnd(shown) == 0 {
		return shown
	}
	var content strings.Builder
	for line := range strings.Lines(shown) {
		content.WriteString(line[numberEnd(line):])
	}
	return content.String()
}

// numberEnd returns where the line number in front of a line ends: "   12→" of
// Claude Code, "12\t" of cat -n, "00012| " of opencode.
func numberEnd(line string) int {
	i := 0
	for i < len(line) && line[i] == ' ' {
		i++
	}
	digit := i
	for i < len(line) && line[i] >= '0' && line[i] <= '9' {
		i++
	}
	if i == digit {
		return 0
	}
	for _, mark := range []string{"→", "\t", "| "} {
		if strings.HasPrefix(line[i:], mark) {
			return i + len(mark)
		}
	}
	return 0
}
