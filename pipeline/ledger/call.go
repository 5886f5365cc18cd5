package ledger

import (
	"slices"
	"strings"
	"unicode"

	"palimpsest/pipeline/conversation"
)

// Call is the meaning of a tool call, independent of the client.
type Call struct {
	Tool string // as the client names it

	// Argument is the most informative argument: the search and its place, the file, the command.
	// It is not shortened and may have several lines.
	Argument string

	Command string // the shell command; "" without one
	Plan    string // the plan put before the person; "" without one

	Reads, Writes, Deletes []string // files, as the call names them

	// Content is the whole content that a write leaves in its one file; "" if the call does not
	// contain it.
	Content string

	// Partial means that a read asks for a part of the file.
	Partial bool

	does    verb
	plans   bool // puts a plan before the person
	asks    bool // puts questions to the person
	current bool // edits the file that the editor has open

	line commandLine // of Command
}

// commandLine is the parsed form of a shell command.
type commandLine struct {
	steps  int    // commands in it
	key    string // the command without parts that don't change its outcome
	runner string // the test or build tool that it runs

	// likeness is equal for commands of which a later one makes up for an earlier one: git with its
	// subcommand, an interpreter with its script, a program.
	likeness string

	checks []check // the tests, builds and linters that it runs
	passes int     // the number of last checks that have passed if the command has
	acts   bool    // may have effects
	probes bool    // ends with exit code 1 if it finds no match
	piped  bool    // its output is only a part
}

// Runner returns the test or build tool that the command runs, with its subcommand; "" if absent.
func (c *Call) Runner() string { return c.line.runner }

// Plain returns the command without parts that don't change its outcome.
func (c *Call) Plain() string { return c.line.key }

// verb is the action of a tool.
type verb int

const (
	other verb = iota
	reads
	writes
	deletes
	moves
	runs
	searches
	patches
	asks
	plans
	edits // reads or writes, depending on its argument "command"
)

// tools are the tools of known clients, in lower case: Claude Code, Codex, opencode, pi, Cline and
// Roo, Cursor, Gemini CLI, OpenHands, SWE-agent.
var tools = map[string]verb{
	"read": reads, "view": reads, "open": reads, "cat": reads, "read_file": reads, "readfile": reads, "read_files": reads,
	"read_many_files": reads, "open_file": reads, "view_file": reads, "notebookread": reads, "view_image": reads,
	"write": writes, "edit": writes, "multiedit": writes, "notebookedit": writes, "create": writes, "insert": writes,
	"write_to_file": writes, "replace_in_file": writes, "write_file": writes, "create_file": writes, "edit_file": writes,
	"new_file": writes, "editor": writes, "apply_diff": writes, "insert_content": writes, "search_and_replace": writes,
	"search_replace": writes, "edit_notebook": writes, "str_replace": writes, "replace": writes, "append": writes,
	"delete_file": deletes, "delete": deletes, "remove_file": deletes,
	"rename_file": moves, "move_file": moves, "rename": moves, "move": moves,
	"bash": runs, "shell": runs, "local_shell": runs, "exec_command": runs, "execute_command": runs, "execute_bash": runs,
	"run_terminal_cmd": runs, "run_terminal_command": runs, "run_command": runs, "run_commands": runs,
	"run_shell_command": runs, "container.exec": runs, "exec": runs, "terminal": runs, "shell_command": runs,
	"grep": searches, "glob": searches, "ls": searches, "list": searches, "list_files": searches, "list_dir": searches,
	"search_files": searches, "codebase_search": searches, "search_codebase": searches, "find_file": searches,
	"file_search": searches, "grep_search": searches, "find": searches,
	"apply_patch": patches, "patch": patches,
	"askuserquestion": asks,
	"exitplanmode":    plans, "exit_plan_mode": plans,
	"str_replace_editor": edits, "str_replace_based_edit_tool": edits,
	"task": other, "agent": other, "todowrite": other, "skill": other, "webfetch": searches, "websearch": searches,
}

// verbs are the words that reveal the action of a tool with another name. The first one in this
// order that a name contains counts.
var verbs = []struct {
	verb  verb
	words []string
}{
	{searches, []string{"search", "grep", "glob", "list", "find"}},
	{deletes, []string{"delete", "remove", "unlink", "rm"}},
	{moves, []string{"move", "rename"}},
	{writes, []string{"write", "edit", "patch", "create", "replace", "insert", "append", "save", "modify", "update"}},
	{runs, []string{"run", "exec", "execute", "shell", "bash", "terminal", "command"}},
	{reads, []string{"read", "view", "open", "cat", "show", "get", "load"}},
}

// verbOf returns the action of a tool, and whether the tool itself is known.
func verbOf(tool string) (does verb, known bool) {
	name := tool
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:] // mcp__server__tool
	}
	if does, known = tools[strings.ToLower(name)]; known {
		if name != tool && (does == asks || does == plans) {
			return other, false // only the client itself has dialogues, not a server
		}
		return does, true
	}
	words := wordsOf(name)
	for _, candidate := range verbs {
		for _, word := range words {
			if slices.Contains(candidate.words, word) {
				return candidate.verb, false
			}
		}
	}
	return other, false
}

// wordsOf splits a tool's name into its words, in lower case.
func wordsOf(name string) []string {
	var words []string
	start := 0
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r):
			words, start = append(words, strings.ToLower(name[start:i])), i+1
		case unicode.IsUpper(r) && i > start && !unicode.IsUpper(rune(name[i-1])):
			words, start = append(words, strings.ToLower(name[start:i])), i
		}
	}
	return append(words, strings.ToLower(name[min(start, len(name)):]))
}

// ParseCall reads a tool call's name and arguments.
func ParseCall(block *conversation.Block) Call {
	call := Call{Tool: block.Name}
	does, known := verbOf(block.Name)
	call.does = does
	if !strings.HasPrefix(strings.TrimLeft(block.Text, " \t\r\n"), "{") {
		call.free(does, block.Text)
		return call
	}
	args := argumentsOf(block.Text)
	if does == edits {
		does = reads
		if args.command != "view" {
			does = writes
		}
		args.command = ""
	}
	call.fill(does, known, &args)
	return call
}

// free reads arguments that are not JSON: the input of custom tools.
func (c *Call) free(does verb, input string) {
	c.Argument = input
	if does == runs && c.program(input) {
		return
	}
	if strings.Contains(input, patchBegin) {
		c.patch(input)
		return
	}
	if does == runs {
		c.run(input)
	}
}

// fill reads decoded arguments.
func (c *Call) fill(does verb, known bool, args *arguments) {
	paths := args.paths
	if !known {
		paths = onlyPaths(paths)
	}
	c.Argument = args.says(does)
	switch does {
	case reads:
		c.Reads, c.Partial = paths, args.partial
	case writes:
		c.Writes, c.Content = paths, args.content
		c.current = len(paths) == 0 && known
		if len(args.paths) == 0 && args.patch != "" {
			c.patch(args.patch)
		}
	case deletes:
		c.Deletes = paths
	case moves:
		c.Deletes, c.Writes = args.sources, args.targets
	case runs:
		c.run(args.command)
	case patches:
		c.apply(args)
	case plans:
		c.Plan, c.plans = args.plan, true
	case asks:
		c.asks = true
	case other, searches, edits:
	}
}

// run reads a shell command.
func (c *Call) run(command string) {
	if command == "" {
		return
	}
	c.Command, c.Argument = command, command
	script := readShell(command)
	c.Reads, c.Writes, c.Deletes = script.reads, script.writes, script.deletes
	c.Content = script.content
	c.line = commandLine{
		steps: script.steps, key: script.key(), runner: script.runner, likeness: script.likeness,
		checks: script.checks, passes: script.passes, acts: script.acts, probes: script.probes, piped: script.piped,
	}
	for _, patch := range script.patches {
		c.patch(patch)
	}
}

// onlyPaths keeps names that look like a file's.
func onlyPaths(names []string) []string {
	var paths []string
	for _, name := range names {
		if strings.ContainsAny(name, "/.") && !strings.ContainsAny(name, " \n") && !strings.Contains(name, "://") {
			paths = append(paths, name)
		}
	}
	return paths
}
