package apiclients

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"palimpsest/api/npmtest"
	"palimpsest/api/upstream/providerdouble"
)

// Client is a client to test, in one of its formats.
type Client struct {
	Name    string // of the row
	Package string // on npm; "" if it is not installed from there

	// known is the proxy's expected name for the client; "" skips the check.
	known string

	// skips has the reasons why cases do not apply to the client, by the case's name.
	skips map[string]string

	// prepare writes the files that the client reads at its start.
	prepare func(s *session) error

	// say returns the command that sends a message to the client, either as the first in a session or in
	// the same session again.
	say func(s *session, text string, again bool) (command, error)

	// shell is the tool call that has the client run a shell command.
	shell func(line string) providerdouble.Call

	// errand is the tool call that has the client start a subagent; nil if it has no subagents.
	errand func(prompt string) providerdouble.Call

	// await is the tool call that waits for a subagent, from the result of the call that started it; nil if
	// starting waits.
	await func(started string) providerdouble.Call

	// recall is a call of one of the proxy's recall tools; nil if the client does not have them.
	recall func(tool, wanted string) providerdouble.Call

	// summarizes is a text from the client's request for a summary of the conversation.
	summarizes string

	// compacted is a text from the requests after that; "" for the model's summary.
	compacted string

	// masks says that the client cuts old results of tools in its own history, which begins another lane.
	masks bool

	// smallWindow is the context window, in tokens, configured in the client so that it compacts on its own.
	// fills is how many parts it reads until it does.
	smallWindow, fills int

	// once says that the client cannot take a second message.
	once bool

	// asksItself says that the client sends the second message of its own compaction itself.
	asksItself bool

	// brings says that the client brings its own credential for the provider.
	brings bool

	// at is where its requests go; nil for Anthropic's and OpenAI's own APIs.
	at openPlatform

	// reports is the tool call that ends a subagent; nil if its text does.
	reports func(result string) providerdouble.Call

	// manual is the command a person types to have the client compact.
	manual string
}

// Clients returns all clients, in the order of the table's rows.
func Clients() []Client {
	clients := append([]Client{claudeCode(), claudeCodeWithItsOwn()}, claudeCodeOnOthers()...)
	clients = append(clients, claudeCodeInClouds()...)

	return append(clients,
		codex(), codexOnGPT6(), codexBuiltIn(),
		geminiCLI("gemini-2.5-pro"), geminiCLI("gemini-3.1-pro-preview"),
		pi("messages", "anthropic"), pi("chat", "chat"), pi("responses", "openai"),
		opencode("messages", "anthropic"), opencode("chat", "chat"), opencode("responses", "openai"),
		kilo(),
		droid("messages"), droid("chat"), droid("responses"),
		continueCLI("messages", "Claude"), continueCLI("responses", "GPT"),
		agentSDK(),
		cline(),
		copilot("messages"), copilot("chat"), copilot("responses"),
		qwenCode("messages"), qwenCode("chat"), qwenCode("responses"),
		javaScript("messages"), javaScript("chat"), javaScript("responses"),
		aiSDK("messages"), aiSDK("chat"), aiSDK("responses"),
		langChain("messages"), langChain("chat"), langChain("responses"),
		goSDK("Anthropic SDK", "\t\"context\"\n\t\"fmt\"\n", anthropicGo),
		goSDK("OpenAI SDK", "\t\"context\"\n\t\"fmt\"\n\n\t\"github.com/openai/openai-go/v3/responses\"\n", openaiGo),
		curl(),
	)
}

// List is the file name of the client's list of habits.
func (c *Client) List() string { return strings.NewReplacer("@", "", "/", "-").Replace(c.Package) }

// program returns a command of an installed package.
func (s *session) program(name string, environment []string, arguments ...string) command {
	return command{program: npmtest.Program(s.install, name), environment: environment, arguments: arguments}
}

// inPackage returns the path of a file of an installed package. Packages of a single system have no commands
// of their own.
func (s *session) inPackage(name, file string) string {
	return filepath.Join(s.install, "node_modules", filepath.FromSlash(name), filepath.FromSlash(file))
}

// call creates a tool call.
func call[T any](name string, input T) providerdouble.Call {
	encoded, err := json.Marshal(input)
	if err != nil {
		panic("apiclients: tool call " + name + ": " + err.Error()) // inputs are structs of strings
	}

	return providerdouble.Call{Name: name, Input: encoded}
}

// bashInput is the input of most clients' shell tool.
type bashInput struct {
	Command     string `json:"command"`
	Description string `json:"description,omitempty"`
}

// errandInput is the input of the tool that starts a subagent.
type errandInput struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	Kind        string `json:"subagent_type"`

	// Background is false so that the main agent waits for the subagent. Claude Code only.
	Background *bool `json:"run_in_background,omitempty"`
}

// commandTime limits one command of a client. On a busy machine Kilo takes minutes.
const commandTime = 10 * time.Minute

// command is one start of a client.
type command struct {
	program     string
	arguments   []string
	environment []string // in addition to that of every command

	// input is the command's standard input. It ends once the command has printed until.
	input, until string

	// terminal says that the command runs at a terminal, and ends after it has printed until.
	terminal bool
}

// Output is the output of a command and its end.
type Output struct {
	Line string // the command line
	Text string // both streams
	Err  error  // nil if it ended with code 0
}

// run runs a command in the session's work folder with the session's own home. The command's environment
// takes only PATH from this process, preceded by the programs from npm.
func (c command) run(ctx context.Context, s *session) Output {
	limited, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	process := exec.CommandContext(limited, c.program, c.arguments...) //nolint:gosec // a client that we installed
	process.Dir = s.work
	process.Env = append([]string{
		"PATH=" + npmtest.Programs(s.install) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + s.home,
		"TMPDIR=" + s.temporary,
		"LANG=C.UTF-8",
		"TERM=dumb",
		"PALIMPSEST_KEY=" + s.key,
	}, c.environment...)
	// Kill the client's process group, so that its own programs end with it.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
	process.WaitDelay = 5 * time.Second
	printed := &transcript{until: c.until}
	process.Stdout, process.Stderr = printed, printed
	if c.input != "" {
		reader, writer := io.Pipe()
		process.Stdin, printed.answered = reader, writer.Close
		go func() { _, _ = io.WriteString(writer, c.input) }() // ends when the command has read it or exited
		defer func() { _ = writer.Close() }()
	}
	err := c.start(process, printed)
	if process.Process != nil {
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL) // leftover processes, if any
	}
	if limited.Err() != nil && ctx.Err() == nil {
		err = errors.Join(fmt.Errorf("not done after %s", commandTime), err)
	}

	return Output{Line: c.program + " " + strings.Join(c.arguments, " "), Text: printed.text.String(), Err: err}
}

// start runs a process to its end.
func (c command) start(process *exec.Cmd, printed *transcript) error {
	if c.terminal {
		return runAtTerminal(process, printed)
	}

	return process.Run()
}

// transcript keeps the output of a command and reports when it contains a text.
type transcript struct {
	text     bytes.Buffer
	until    string
	answered func() error // called when until has been printed; optional
}

// Write implements io.Writer.
func (t *transcript) Write(text []byte) (int, error) {
	t.text.Write(text)
	if t.answered != nil && bytes.Contains(t.text.Bytes(), []byte(t.until)) {
		answered := t.answered
		t.answered = nil
		_ = answered() // closing a pipe never fails, and a failure at a terminal fails the test later
	}

	return len(text), nil
}

// packages says which clients are installed, at which versions.
//
//go:embed npm/package.json npm/package-lock.json
var packages embed.FS

// Install installs the newest version of each client into a directory, or with pinned the exact versions of
// package-lock.json. It needs npm and its registry.
func Install(ctx context.Context, directory string, pinned bool) error {
	source, err := fs.Sub(packages, "npm")
	if err != nil {
		return fmt.Errorf("the list of clients: %w", err)
	}
	if pinned {
		return npmtest.Install(ctx, source, directory)
	}

	return npmtest.InstallNewest(ctx, source, directory)
}

// Pinned returns the version of each package in the CI tests and the docs.
func Pinned() (map[string]string, error) {
	source, err := fs.Sub(packages, "npm")
	if err != nil {
		return nil, fmt.Errorf("the list of clients: %w", err)
	}

	return npmtest.Pinned(source)
}
