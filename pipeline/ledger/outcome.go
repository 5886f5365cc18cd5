package ledger

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Only the head and the tail of a result are read, because clients write there how a call ended,
// and results may have megabytes.
const (
	headBytes = 1 << 10
	tailBytes = 2 << 10
)

// Failed reports whether a tool result says that its call failed: by its mark, by an exit code, or
// by its beginning. Chat and Responses have no mark.
func Failed(result *conversation.Block) bool {
	if result.IsError {
		return true
	}
	said := head(result.Text)
	for _, start := range []string{
		"Error:", "error:", "ERROR:", "Traceback (most recent call last)", "panic:", "fatal:", "<tool_use_error>",
		"apply_patch verification failed", "[ERROR]", "The tool execution failed", "Script failed",
	} {
		if strings.HasPrefix(said, start) {
			return true
		}
	}
	if code, found := exitCode(said, tail(result.Text)); found {
		return code != "0"
	}
	return strings.HasPrefix(said, "{") && strings.Contains(tail(result.Text), `"success":false`)
}

// Failed reports whether a result of the call says that it failed. For a test or build tool the
// output counts too, because a pipe hides its exit code.
func (c *Call) Failed(result *conversation.Block) bool {
	if Failed(result) {
		return !c.line.probes || !saysNothing(result.Text)
	}
	return c.line.runner != "" && reportsFailure(result.Text)
}

// saysNothing reports whether a command ended with exit code 1 and no output.
func saysNothing(output string) bool {
	if len(output) > headBytes {
		return false
	}
	if code, found := exitCode(head(output), tail(output)); !found || code != "1" {
		return false
	}
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && line != "(no output)" && !isFrame(line) && !strings.HasPrefix(line, "Command exited with code") && !strings.HasPrefix(line, "[The command completed") {
			return false
		}
	}
	return true
}

// refused reports whether a person stopped a call.
func refused(result *conversation.Block) bool {
	if !result.IsError {
		return false
	}
	said := head(result.Text)
	for _, start := range []string{"The user doesn't want to", "The user denied", "User rejected", "Operation aborted", "Operation cancelled"} {
		if strings.HasPrefix(said, start) {
			return true
		}
	}
	end := tail(result.Text)
	return strings.Contains(said, "[Request interrupted by user") || strings.HasSuffix(end, "Command aborted") || strings.HasSuffix(end, "[Request interrupted by user for tool use]")
}

// Rejection reports whether a result says that a person rejected the call, and returns what they
// said, word for word.
func Rejection(result *conversation.Block) (said string, isRejected bool) {
	if !refused(result) {
		return "", false
	}
	_, said, _ = strings.Cut(result.Text, "the user said:\n")
	return strings.TrimSpace(said), strings.HasPrefix(result.Text, "The user doesn't want to")
}

// foundNothing reports whether a failed call was only a search, or was invalid and never ran.
// Neither blocks the work.
func (m *Made) foundNothing() bool {
	said := head(m.Result.Text)
	for _, words := range []string{"InputValidationError", "Sibling tool call errored", "No such tool available", "Unknown tool"} {
		if at := strings.Index(said, words); at >= 0 && at < 40 {
			return true
		}
	}
	switch {
	case m.Command != "":
		return !m.line.acts
	case m.does == searches:
		return true
	case m.does == reads:
		low := lower(said)
		return slices.ContainsFunc([]string{"not exist", "not found", "no such file", "is a directory", "eisdir", "exceeds", "too large"}, func(words string) bool { return strings.Contains(low, words) })
	}
	return false
}

// head returns the first bytes of a text, tail the last ones.
func head(text string) string {
	return strings.TrimLeft(text[:min(len(text), headBytes)], " \t\r\n")
}

func tail(text string) string {
	return strings.TrimRight(text[max(0, len(text)-tailBytes):], " \t\r\n")
}

// exitCode returns the exit code that a client puts before or after a command's output.
func exitCode(head, tail string) (code string, found bool) {
	for _, words := range []string{"Exit code ", "Exit code: "} {
		if rest, ok := strings.CutPrefix(head, words); ok {
			return digits(rest)
		}
	}
	// Codex: lines of its own, then "Output:".
	if before, _, ok := strings.Cut(head, "\nOutput:"); ok {
		for _, words := range []string{"Process exited with code ", "Exit code: "} {
			if _, rest, ok := strings.Cut(before, words); ok {
				return digits(rest)
			}
		}
	}
	if strings.HasPrefix(head, "Script ") {
		return exitCodeInScript(head)
	}
	if strings.HasPrefix(head, `{"output":`) {
		if i := strings.LastIndex(tail, `"exit_code":`); i >= 0 {
			return digits(strings.TrimLeft(tail[i+len(`"exit_code":`):], " "))
		}
	}
	last := tail[strings.LastIndexByte(tail, '\n')+1:]
	if len(last) > 200 {
		return "", false
	}
	for _, words := range []string{"exited with code ", "finished with exit code ", "completed with exit code ", "failed with exit code ", "exit status "} {
		if i := strings.LastIndex(last, words); i >= 0 {
			return digits(last[i+len(words):])
		}
	}
	return "", false
}

// ranCommand opens the result of Codex's command tool in a program.
const ranCommand = `{"chunk_id":`

// exitCodeInScript returns the first exit code other than 0 of the commands that a program of Codex
// has run, provided that it prints the results of its tool: an object a line.
func exitCodeInScript(head string) (code string, found bool) {
	const ends = `"exit_code":`
	for line := range strings.Lines(head) {
		if _, rest, ended := strings.Cut(line, ends); ended && strings.HasPrefix(line, ranCommand) && (!found || code == "0") {
			code, found = digits(rest)
		}
	}
	return code, found
}

// digits returns the number that a text begins with.
func digits(text string) (number string, found bool) {
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && text[end] == '-') {
		end++
	}
	return text[:end], end > 0
}

// runners are the programs that test or build, with the words that make them do so; nil means
// always.
var runners = map[string][]string{
	"go": {"test", "build", "vet"}, "cargo": {"test", "build", "check", "clippy", "nextest"},
	"npm": {"test", "t", "run", "ci"}, "pnpm": nil, "yarn": nil, "bun": {"test", "run", "x"}, "npx": nil, "deno": {"test", "check"},
	"pytest": nil, "tox": nil, "nox": nil, "mypy": nil, "ruff": nil, "jest": nil, "vitest": nil, "tsc": nil, "eslint": nil,
	"make": nil, "ninja": nil, "cmake": nil, "ctest": nil, "bazel": {"test", "build"}, "gradle": nil, "gradlew": nil,
	"mvn": nil, "mvnw": nil, "dotnet": {"test", "build"}, "mise": {"run", "r"}, "just": nil, "task": nil, "rspec": nil,
	"phpunit": nil, "mix": {"test", "compile"}, "swift": {"test", "build"}, "golangci-lint": nil, "gcc": nil, "g++": nil, "clang": nil,
}

// runnerOf returns the test or build tool that a command runs, with its subcommand; "" if absent.
func runnerOf(words []string) string {
	name := base(words[0])
	if (name == "python" || name == "python3") && len(words) > 2 && words[1] == "-m" {
		words = words[2:]
		name = words[0]
	}
	subcommands, known := runners[name]
	if !known {
		return ""
	}
	if len(words) == 1 || strings.HasPrefix(words[1], "-") {
		if subcommands != nil {
			return ""
		}
		return name
	}
	if subcommands != nil && !slices.Contains(subcommands, words[1]) {
		return ""
	}
	if name == "mise" || words[1] == "run" && len(words) > 2 {
		return strings.Join(words[:min(3, len(words))], " ")
	}
	if subcommands == nil && (strings.ContainsAny(words[1], "/.")) {
		return name
	}
	return name + " " + words[1]
}

// reportsFailure reports whether a test or build tool's output ends in a failure: the last decisive
// line counts.
func reportsFailure(output string) bool {
	rest := tail(output)
	for rest != "" {
		i := strings.LastIndexByte(rest, '\n')
		line := strings.TrimSpace(rest[i+1:])
		rest = rest[:max(i, 0)]
		if saysFailure(line) {
			return true
		}
		if saysSuccess(line) {
			return false
		}
	}
	return false
}

// saysFailure reports whether a line of a test or build tool reports a failure.
func saysFailure(line string) bool {
	for _, start := range []string{
		"FAIL", "--- FAIL", "make: ***", "npm ERR!", "npm error", "error:", "error[", "Error:", "ERROR:", "panic:", "BUILD FAILED",
		"Traceback (most recent", "✖ ", "✗ ", "[FAIL]", "AssertionError",
	} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	for _, part := range []string{"test result: FAILED", "ERROR task failed", ": error TS", ": error: ", "): error ", "build failed"} {
		if strings.Contains(line, part) {
			return true
		}
	}
	for _, word := range []string{" failed", " failing"} {
		if i := strings.Index(line, word); i > 0 && line[i-1] >= '1' && line[i-1] <= '9' || i > 1 && line[i-1] == '0' && line[i-2] >= '0' && line[i-2] <= '9' {
			return true
		}
	}
	return false
}

// saysSuccess reports whether a line of a test or build tool reports overall success.
func saysSuccess(line string) bool {
	return line == "PASS" || strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "test result: ok") ||
		strings.HasSuffix(line, " passed") || strings.Contains(line, " passed in ") || strings.HasPrefix(line, "BUILD SUCCESS") ||
		line == "0 issues."
}

// excerpt returns the most informative line of a failed call's result, for the model to read: of a
// test or build tool the first that names a failure.
func excerpt(call *Call, result *conversation.Block) string {
	first, sum, diagnostic := "", "", ""
	for _, part := range []string{head(result.Text), tail(result.Text)} {
		for line := range strings.Lines(printed(part)) {
			line = strings.TrimSpace(line)
			if line == "" || isFrame(line) {
				continue
			}
			if first == "" {
				first = line
			}
			switch {
			case call.Command == "" || line == "FAIL":
			case isSum(line):
				sum = cmp.Or(sum, line)
			case saysFailure(line):
				return harmless(oneLine(line, excerptCharacters))
			case isDiagnostic(line):
				diagnostic = cmp.Or(diagnostic, line)
			}
		}
	}
	return harmless(oneLine(cmp.Or(diagnostic, sum, first), excerptCharacters))
}

// printed returns a part of a result with the commands' output in place of the objects around it.
func printed(part string) string {
	if !strings.Contains(part, ranCommand) {
		return part
	}
	var text strings.Builder
	for line := range strings.Lines(part) {
		if _, output, found := strings.Cut(line, `"output":"`); found && strings.HasPrefix(line, ranCommand) {
			line = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`, `"}`, "").Replace(output)
		}
		text.WriteString(line)
	}
	return text.String()
}

// isSum reports whether a line only reports that something failed, because other lines have the
// details.
func isSum(line string) bool {
	return strings.HasPrefix(line, "make: ***") || strings.HasSuffix(line, "[build failed]") || strings.HasSuffix(line, "ERROR task failed")
}

// isDiagnostic reports whether a line begins like those of compilers and linters: with a file, a
// line and mostly a column.
func isDiagnostic(line string) bool {
	file, rest, found := strings.Cut(line, ":")
	if !found || path.Ext(file) == "" || strings.ContainsAny(file, " \t\"'`(") {
		return false
	}
	number, said, found := strings.Cut(rest, ":")
	return found && number != "" && strings.Trim(number, "0123456789") == "" && strings.TrimSpace(said) != ""
}

// isFrame reports whether a line belongs to a client's frame around every output.
func isFrame(line string) bool {
	for _, start := range []string{"Exit code", "Chunk ID:", "Wall time", "Process exited", "Script completed", "Script failed", "Script running", "Script error:", "Original token count:", "Output:", "[test", "$ "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// harmless keeps a tool's words from opening or closing a block around them.
func harmless(text string) string {
	text = strings.ReplaceAll(text, "<tool_use_error>", "")
	text = strings.ReplaceAll(text, "</tool_use_error>", "")
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	return strings.NewReplacer("<", "‹", ">", "›", "[AUTO CONTEXT COMPRESSION]", "", "[CONTEXT SUMMARY]", "", "[TOOL OUTPUT ARCHIVED]", "").Replace(text)
}
