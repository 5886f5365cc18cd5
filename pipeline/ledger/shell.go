package ledger

import (
	"path"
	"slices"
	"strings"
)

// script holds the effects of a shell command on files, judged by its words.
type script struct {
	reads, writes, deletes []string
	content                string   // of the one file that a here-document fills
	patches                []string // for apply_patch
	steps                  int      // commands with an effect
	runner                 string   // the last test or build tool
	likeness               string   // of the last command
	keys                   []string
	checks                 []check
	passes                 int  // checks at the end that have all passed if the whole line has
	acts                   bool // may have effects
	probes                 bool // the last command ends with exit code 1 if it finds no match
	piped                  bool // some output went to another command

	folder string              // the script's current folder
	loops  map[string][]string // the values of loop variables
}

// maxScript bounds how much of a command is read. The rest is input of some program, not commands.
const maxScript = 64 << 10

// maxNames bounds the files that a command reads, writes or deletes, each, because each new one is
// compared with those before it.
const maxNames = 200

// maxFolder bounds the folder's name, in bytes, like operating systems do.
const maxFolder = 4096

// readShell reads a command.
func readShell(command string) *script {
	s := &script{}
	commands := simpleCommands(command[:min(len(command), maxScript)])
	for i := range commands {
		s.run(&commands[i])
	}
	return s
}

// key identifies the command's effect, without the folder and without parts that only shorten its
// output: two commands with one key do the same.
func (s *script) key() string { return strings.Join(s.keys, "; ") }

// run reads one simple command.
func (s *script) run(c *simple) {
	words := s.strip(c.words)
	s.redirected(c)
	if len(words) == 0 {
		return
	}
	name := base(words[0])
	if name == "cd" || name == "pushd" {
		s.enter(words)
		return
	}
	if !c.piped || !slices.Contains([]string{"head", "tail", "grep", "rg", "wc", "sort", "uniq", "cat", "less", "tee", "sed", "awk", "cut", "tr", "jq"}, name) {
		s.steps++
		if !slices.Contains([]string{"echo", "printf", "export", "set", "true", "sleep", "pwd"}, name) {
			s.keys = append(s.keys, strings.Join(words, " "))
		}
	}
	if runner := runnerOf(words); runner != "" {
		s.runner = runner
	}
	s.outcome(c, name, words)
	if strings.Contains(c.here, patchBegin) {
		s.patches = append(s.patches, c.here)
	} else if name == "apply_patch" && len(words) > 1 {
		s.patches = append(s.patches, words[1])
	}
	s.files(name, words[1:], c.piped)
}

// strip removes words before a command: keywords, assignments and programs that run another one. It
// notes the values of a loop's variable.
func (s *script) strip(words []string) []string {
	for len(words) > 0 {
		word := words[0]
		switch word {
		case "for", "select":
			if len(words) > 2 && words[2] == "in" {
				if s.loops == nil {
					s.loops = map[string][]string{}
				}
				s.loops[words[1]] = s.values(words[3:])
			}
			return nil
		case "do", "then", "else", "elif", "if", "while", "until", "!", "{", "}", "fi", "done", "esac", "time",
			"sudo", "nohup", "command", "exec", "env":
			words = words[1:]
		case "timeout":
			words = words[min(2, len(words)):]
		default:
			if name, _, found := strings.Cut(word, "="); !found || strings.ContainsAny(name, "/-.$ ") || name == "" {
				return words
			}
			words = words[1:]
		}
	}
	return words
}

// values returns the words of a loop, with variables of earlier loops replaced by their values.
func (s *script) values(words []string) []string {
	var values []string
	for _, word := range words {
		known, is := s.loops[strings.Trim(strings.TrimPrefix(word, "$"), "{}")]
		if !is || !strings.HasPrefix(word, "$") {
			known = []string{word}
		}
		values = append(values, known[:min(len(known), maxNames-len(values))]...)
		if len(values) == maxNames {
			break
		}
	}
	return values
}

// redirected notes the files of a command's redirections.
func (s *script) redirected(c *simple) {
	before := len(s.writes)
	s.note(&s.writes, c.into...)
	s.note(&s.reads, c.from...)
	if len(s.writes) == before+1 && before == 0 && c.here != "" && len(c.words) == 1 && c.words[0] == "cat" {
		s.content = c.here
	} else if len(s.writes) > before {
		s.content = ""
	}
}

// enter changes the folder that relative names begin in.
func (s *script) enter(words []string) {
	if len(words) < 2 || strings.ContainsAny(words[1], "$\x00~-") && !strings.HasPrefix(words[1], "/") {
		s.folder = ""
		return
	}
	if path.IsAbs(words[1]) {
		s.folder = words[1]
		return
	}
	if s.folder = path.Join(s.folder, words[1]); len(s.folder) > maxFolder {
		s.folder = ""
	}
}

// note adds the names of files, with loop variables replaced by their values. It leaves out devices
// and names that only the shell can know.
func (s *script) note(list *[]string, names ...string) {
	for _, name := range names {
		if variable, found := strings.CutPrefix(name, "$"); found {
			for _, value := range s.loops[strings.Trim(variable, "{}")] {
				s.noteFile(list, value)
			}
			continue
		}
		s.noteFile(list, name)
	}
}

// noteFile adds the name of a file.
func (s *script) noteFile(list *[]string, name string) {
	if name == "" || name == "-" || name == "." || strings.HasPrefix(name, "/dev/") || strings.ContainsAny(name, "$\x00\n"+unknown) {
		return
	}
	if s.folder != "" && !path.IsAbs(name) && !strings.HasPrefix(name, "~") {
		name = path.Join(s.folder, name)
	}
	if len(*list) < maxNames && !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// files notes the effects of a command on the files that its words name.
func (s *script) files(name string, words []string, piped bool) {
	switch name {
	case "cat", "head", "tail", "less", "more", "nl", "bat", "tac":
		if !piped {
			s.note(&s.reads, plain(words)...)
		}
	case "sed", "gsed", "perl":
		s.streamEditor(name, words)
	case "tee", "touch", "truncate":
		s.note(&s.writes, plain(words)...)
	case "rm", "unlink", "trash":
		s.note(&s.deletes, plain(words)...)
	case "mv":
		s.copied(plain(words), &s.deletes)
	case "cp", "install":
		s.copied(plain(words), &s.reads)
	case "git":
		s.git(words)
	case "gofmt", "goimports", "gofumpt", "prettier", "eslint", "black", "ruff", "rustfmt", "biome":
		if name == "black" || slices.ContainsFunc(words, func(word string) bool { return slices.Contains([]string{"-w", "--write", "--fix", "format"}, word) }) {
			s.note(&s.writes, withExtension(plain(words))...)
		}
	}
}

// streamEditor notes the files of sed and perl, which change them with -i.
func (s *script) streamEditor(name string, words []string) {
	inPlace, scripted := false, false
	var names []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-e" || word == "-f" || word == "--expression":
			scripted = true
			i++
		case strings.HasPrefix(word, "--in-place"):
			inPlace = true
		case strings.HasPrefix(word, "-") && word != "-" && !strings.HasPrefix(word, "--"):
			inPlace = inPlace || strings.Contains(word, "i") && !strings.HasPrefix(word, "-M") && !strings.HasPrefix(word, "-I")
		case word != "":
			names = append(names, word)
		}
	}
	if !scripted && len(names) > 0 {
		names = names[1:]
	}
	if inPlace {
		s.note(&s.writes, names...)
		return
	}
	if name != "perl" {
		s.note(&s.reads, names...)
	}
}

// copied notes a copy or a move: the last name is the new file or its folder.
func (s *script) copied(names []string, sources *[]string) {
	if len(names) < 2 {
		return
	}
	target := names[len(names)-1]
	for _, source := range names[:len(names)-1] {
		s.note(sources, source)
		if strings.HasSuffix(target, "/") || target == "." || len(names) > 2 {
			s.note(&s.writes, path.Join(target, base(source)))
			continue
		}
		s.note(&s.writes, target)
	}
}

// git notes the files that git itself changes.
func (s *script) git(words []string) {
	for len(words) > 1 && strings.HasPrefix(words[0], "-") {
		words = words[min(len(words), 2):] // -C folder, -c setting
	}
	if len(words) < 2 {
		return
	}
	arguments := words[1:]
	switch words[0] {
	case "rm":
		if !slices.Contains(arguments, "--cached") {
			s.note(&s.deletes, plain(arguments)...)
		}
	case "mv":
		s.copied(plain(arguments), &s.deletes)
	case "restore":
		if !slices.Contains(arguments, "--staged") {
			s.note(&s.writes, plain(arguments)...)
		}
	case "checkout":
		if i := slices.Index(arguments, "--"); i >= 0 {
			s.note(&s.writes, plain(arguments[i+1:])...)
		} else if slices.Contains(arguments, "--theirs") || slices.Contains(arguments, "--ours") {
			s.note(&s.writes, plain(arguments)...)
		}
	}
}

// plain leaves out options and the numbers that follow them.
func plain(words []string) []string {
	var names []string
	for _, word := range words {
		if !strings.HasPrefix(word, "-") && strings.Trim(word, "0123456789+") != "" {
			names = append(names, word)
		}
	}
	return names
}

// withExtension keeps names that look like a file rather than a folder or a command.
func withExtension(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return path.Ext(name) == "" || strings.HasPrefix(name, "./...") })
}

// base returns the last element of a path, including Windows paths.
func base(name string) string {
	return name[strings.LastIndexAny(name, `/\`)+1:]
}
