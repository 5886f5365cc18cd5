package ledger

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Missing is the part of a ledger that a text lacks.
type Missing struct {
	Directives []Directive
	Modified   []File // changed and not deleted since
	Errors     []Error
	Decisions  []Decision
}

// Empty reports whether the text lacks no entry.
func (m Missing) Empty() bool {
	return len(m.Directives)+len(m.Modified)+len(m.Errors)+len(m.Decisions) == 0
}

// Missing returns the entries that a text, such as a summary, lacks: directives, which it must hold
// word for word, apart from white space and capitals; modified files, which it may name by the end
// of their path, or by a unique last element alone; open errors, by their command, file or message;
// decisions, if it has less than four fifths of their longer words.
func (l *Ledger) Missing(text string) Missing {
	var missing Missing
	told := flat(text)
	for _, directive := range l.Directives {
		if !strings.Contains(told, flat(directive.Text)) {
			missing.Directives = append(missing.Directives, directive)
		}
	}
	for _, file := range l.Changed() {
		if !Mentions(text, file.Path, file.IsOnly) {
			missing.Modified = append(missing.Modified, *file.File)
		}
	}
	for i := range l.Errors {
		if e := &l.Errors[i]; e.Open() && !tells(told, e.Subject) && !tells(told, e.Excerpt) {
			missing.Errors = append(missing.Errors, *e)
		}
	}
	words := wordSet(told)
	for _, decision := range l.Decisions {
		if !covers(words, flat(decision.Text)) {
			missing.Decisions = append(missing.Decisions, decision)
		}
	}
	return missing
}

// ChangedFile is a changed file that still exists.
type ChangedFile struct {
	*File

	IsOnly bool // no other changed file has the same last element
}

// Changed returns the changed files that have not been deleted since.
func (l *Ledger) Changed() []ChangedFile {
	alike := map[string]int{}
	for i := range l.Files {
		if file := &l.Files[i]; file.Modified != Never {
			alike[base(file.Path)]++
		}
	}
	var changed []ChangedFile
	for i := range l.Files {
		if file := &l.Files[i]; file.Modified != Never && !file.Gone {
			changed = append(changed, ChangedFile{File: file, IsOnly: alike[base(file.Path)] == 1})
		}
	}
	return changed
}

// flat returns a text in lower case and with single spaces.
func flat(text string) string {
	return strings.Join(strings.Fields(lower(text)), " ")
}

// tells reports whether a flat text holds words, shortened ones without their end.
func tells(told, words string) bool {
	words = strings.TrimSuffix(flat(words), "…")
	return words != "" && strings.Contains(told, words)
}

// Mentions reports whether a text names a file, in full or by the end of its path: by the last
// element alone if it is unique.
func Mentions(text, path string, unique bool) bool {
	name := base(path)
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		at = i + len(name)
		start := i
		for start > 0 && isPathByte(text[start-1]) {
			start--
		}
		if at < len(text) && isNameByte(text[at]) || at+1 < len(text) && text[at] == '.' && isNameByte(text[at+1]) {
			continue
		}
		named := strings.TrimPrefix(text[start:at], "./")
		switch {
		case named == path, strings.HasSuffix(named, "/"+path):
			return true
		case strings.HasSuffix(path, "/"+named):
			if unique || strings.Contains(named, "/") {
				return true
			}
		}
	}
}

func isNameByte(c byte) bool {
	return isWordByte(c|0x20) && c != '\'' || c == '-' || c == '_' || c >= utf8.RuneSelf
}

func isPathByte(c byte) bool {
	return isNameByte(c) || strings.IndexByte("/.~+@", c) >= 0
}

// wordSet returns the words of a flat text.
func wordSet(told string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsFuncSeq(told, isNoWord) {
		words[word] = true
	}
	return words
}

func isNoWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\''
}

// covers reports whether four fifths of a sentence's longer words are known.
func covers(words map[string]bool, sentence string) bool {
	known, all := 0, 0
	for word := range strings.FieldsFuncSeq(sentence, isNoWord) {
		if len(word) < 4 {
			continue
		}
		all++
		if words[word] {
			known++
		}
	}
	return all > 0 && known*5 >= all*4
}

// checkKind is the kind of problem that a check finds.
type checkKind byte

const (
	noCheck checkKind = iota
	tests
	builds // compilers and type checkers
	lints
)

// check is one run of a test, build or lint tool: which one, and how much it covers.
type check struct {
	kind    checkKind
	program string
	folder  string   // its folder, if the command names it
	scope   []string // packages, files or folders; empty means all
	filter  string   // of the tests by name; "" means all
	tags    []string // that select tests, such as "integration"
}

// checkWords are the words in a task's name that reveal its kind of check.
var checkWords = []struct {
	kind  checkKind
	words []string
}{
	{noCheck, []string{"fmt", "format", "prettier", "fix", "install", "publish", "deploy", "clean", "dev", "start", "serve", "watch"}},
	{tests, []string{"test", "tests", "spec", "e2e", "jest", "vitest", "pytest", "ci", "verify", "nextest", "t"}},
	{lints, []string{"lint", "eslint", "clippy", "ruff", "stylelint", "vet"}},
	{builds, []string{"build", "check", "typecheck", "types", "tsc", "tsgo", "compile", "all", "assemble"}},
}

// programKinds are the tools that check without a subcommand.
var programKinds = map[string]checkKind{
	"pytest": tests, "tox": tests, "nox": tests, "jest": tests, "vitest": tests, "ctest": tests, "rspec": tests, "phpunit": tests, "mocha": tests, "ava": tests,
	"mypy": builds, "pyright": builds, "tsc": builds, "tsgo": builds, "gcc": builds, "g++": builds, "clang": builds, "ninja": builds, "javac": builds, "rustc": builds,
	"eslint": lints, "golangci-lint": lints, "ruff": lints, "flake8": lints, "pylint": lints, "staticcheck": lints, "biome": lints, "shellcheck": lints,
}

// taskRunners run a task by its name.
var taskRunners = setOf("go cargo npm pnpm yarn bun deno make bazel gradle gradlew mvn mvnw dotnet mise just task mix swift rake composer nx turbo")

// valued are the options whose value is the next word.
var valued = setOf("-run -k -t -m -p -w -C -tags --tags --filter --grep --testNamePattern --package --workspace --prefix --project --config -c -count -timeout --timeout -n -j -o --features --test --bench -P --reporter")

// checkOf returns the check that a command runs.
func checkOf(words []string, folder string) (made check, is bool) {
	words = unwrapped(words)
	if len(words) == 0 {
		return check{}, false
	}
	name := base(words[0])
	made = check{kind: programKinds[name], program: name, folder: folder}
	rest := words[1:]
	if name == "golangci-lint" || name == "ruff" || name == "biome" {
		if len(rest) > 0 && slices.Contains([]string{"fmt", "format", "fix"}, rest[0]) {
			return check{}, false
		}
	}
	if taskRunners[name] {
		rest = made.task(rest)
	}
	if made.kind == noCheck {
		return check{}, false
	}
	made.read(rest)
	slices.Sort(made.scope)
	return made, true
}

// unwrapped removes the programs that run a tool of the project.
func unwrapped(words []string) []string {
	for len(words) > 1 {
		switch name := base(words[0]); {
		case name == "npx" || name == "bunx" || name == "pnpx":
			words = words[1:]
		case slices.Contains([]string{"pnpm exec", "yarn exec", "uv run", "poetry run", "pipenv run", "bundle exec", "python -m", "python3 -m", "go tool", "mise exec", "rye run", "hatch run"}, name+" "+words[1]):
			words = words[2:]
		default:
			return words
		}
		for len(words) > 0 && (words[0] == "-y" || words[0] == "--yes" || words[0] == "--" || words[0] == "--no-install") {
			words = words[1:]
		}
	}
	return words
}

// task reads the tasks given to a task runner, and returns the words after them.
func (c *check) task(words []string) []string {
	var options []string
	for len(words) > 0 {
		word := words[0]
		switch {
		case word == "run" || word == "r" || word == "exec":
			words = words[1:]
			continue
		case strings.HasPrefix(word, "-") && word != "--":
			size := 1
			if valued[word] && len(words) > 1 {
				size = 2
			}
			options, words = append(options, words[:size]...), words[size:]
			continue
		}
		break
	}
	if len(words) == 0 {
		if c.program == "make" || c.program == "just" || c.program == "task" {
			c.kind = builds
		}
		return options
	}
	pieces := strings.FieldsFunc(strings.ToLower(words[0]), func(r rune) bool { return strings.ContainsRune(":-_./@", r) })
	at := -1
	for _, known := range checkWords {
		at = slices.IndexFunc(pieces, func(piece string) bool { return slices.Contains(known.words, piece) })
		if at >= 0 {
			c.kind = known.kind
			break
		}
	}
	if c.kind == tests {
		c.tags = slices.Delete(slices.Clone(pieces), at, at+1)
		if pieces[at] == "ci" || pieces[at] == "e2e" {
			c.tags = append(c.tags, pieces[at])
		}
	}
	if c.program == "npm" && words[0] == "ci" {
		c.kind = noCheck // installs
	}
	return append(options, words[1:]...)
}

// read reads the scope of a check.
func (c *check) read(words []string) {
	for len(words) > 0 {
		option, value, joined := strings.Cut(words[0], "=")
		words = words[1:]
		if !strings.HasPrefix(option, "-") || option == "-" {
			c.cover(option)
			continue
		}
		if !joined && valued[option] && len(words) > 0 {
			value, words = words[0], words[1:]
		}
		value = strings.Trim(value, `"'`)
		switch option {
		case "-run", "-k", "-t", "--filter", "--grep", "--testNamePattern":
			c.filter = value
		case "-p", "-w", "--package", "--workspace", "--test", "-m":
			c.scope = append(c.scope, value)
		case "-C", "--prefix", "--project":
			c.folder = path.Join(c.folder, value)
		case "-tags", "--tags", "--features":
			c.tags = append(c.tags, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
		}
	}
}

// cover notes a word that names a part of the scope.
func (c *check) cover(word string) {
	switch {
	case word == "" || word == "." || word == "./..." || word == "..." || word == "--":
	case strings.ContainsAny(word, "/.*") || strings.Contains(word, "::"):
		if word = strings.TrimPrefix(word, "./"); !path.IsAbs(word) && c.folder != "" {
			word = c.folder + "/" + word
		}
		c.scope = append(c.scope, strings.TrimSuffix(word, "/"))
	case c.program == "cargo":
		c.filter = word
	}
}

// identity is equal for two checks if the later one replaces the result of the earlier one.
func (c *check) identity() string {
	return string('0'+c.kind) + " " + c.program + " " + c.folder + " " + strings.Join(c.scope, " ") + " -run " + c.filter
}

// isWhole reports whether a check covers everything.
func (c *check) isWhole() bool { return len(c.scope) == 0 && c.filter == "" }

// covers reports whether a check that passed, or failed later, includes everything that another one
// checked.
func (c *check) covers(other *check) bool {
	if c.kind != other.kind && (c.kind != tests || other.kind != builds) {
		return false
	}
	if !c.hasTags(other.tags) || c.program != other.program && !c.isWhole() {
		return false
	}
	if len(c.scope) == 0 {
		if !takesIn(c.folder, other.folder) {
			return false
		}
	} else if len(other.scope) == 0 || slices.ContainsFunc(other.scope, func(part string) bool { return !c.takesIn(part) }) {
		return false
	}
	return c.filter == "" || c.filter == other.filter || c.kind != other.kind
}

// hasTags reports whether a check includes everything that some tags select.
func (c *check) hasTags(tags []string) bool {
	if slices.Contains(c.tags, "ci") || slices.Contains(c.tags, "all") {
		return true
	}
	return !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(c.tags, tag) })
}

// takesIn reports whether the check's scope includes a package, file or folder.
func (c *check) takesIn(part string) bool {
	return slices.ContainsFunc(c.scope, func(own string) bool {
		if folder, all := strings.CutSuffix(own, "/..."); all {
			return takesIn(folder, strings.TrimSuffix(part, "/..."))
		}
		return own == part || strings.HasSuffix(own, "/"+part) || strings.HasSuffix(part, "/"+own) || strings.HasPrefix(part, own+"::") || strings.HasPrefix(part, own+"/")
	})
}

// takesIn reports whether a folder equals or contains another one, judged by their names, since one
// of them may be relative to a folder that the command does not name.
func takesIn(folder, other string) bool {
	switch {
	case folder == "" || folder == other:
		return true
	case other == "":
		return path.IsAbs(folder)
	}
	return strings.HasPrefix(other, folder+"/") || strings.HasSuffix(other, "/"+folder) || strings.HasSuffix(folder, "/"+other) ||
		strings.Contains(other, "/"+folder+"/")
}

// names reports whether the check's filter includes a test.
func (c *check) names(test string) bool {
	for name := range strings.SplitSeq(c.filter, "|") {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "^"), "$")
		name, _, _ = strings.Cut(strings.Trim(name, "()"), "/")
		if name != "" && strings.Contains(test, name) {
			return true
		}
	}
	return false
}
