package connect

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Client describes how to set up one client.
type Client struct {
	ID    string // as typed in commands
	Title string
	Names []string // other accepted names

	// Runs are the programs of the client. The first installed one is started.
	Runs []string

	// Changed lists the client's differences behind a custom base URL.
	Changed []Difference

	// marks are folders and files that exist if the client is used.
	marks func(Place) []string

	// files are the user's files that set the client up; nil if there are no such files.
	files func(Place, Setup) []File

	// inProject are the project's files that set the client up; nil if a project's cannot. They hold no
	// key.
	inProject func(Place, Setup) []File

	// steps are left for the user to do.
	steps func(Place, Setup) []string

	// launch tells how to start the client for one run; nil if it reads its files only.
	launch func(Setup) Launch

	// shell are environment variables that lead the client elsewhere.
	shell []string
}

// Difference is how a client behaves differently behind a custom base URL, and how to reset that.
type Difference struct{ What, Reset string }

// File is a file of a client with its required entries.
type File struct {
	Path    string
	Kind    Kind
	Entries []Entry

	// Secret says that the file holds the key, so that only its owner may read it.
	Secret bool

	// Above are files that override this one if they hold the same entries.
	Above []string

	start string // the content of a new file; "" if only the entries
}

// Launch describes how to start a client for one run.
type Launch struct {
	Arguments   []string // before the user's
	Environment []string

	// Files are written into a temporary folder, by their names. "{folder}" in arguments and in the
	// environment is replaced by its path.
	Files map[string]string
}

// Clients returns all clients that can be set up.
func Clients() []Client {
	return []Client{
		claudeCode(), claudeCodeAction(), codex(), openCode(), kilo(), pi(), cline(), continueDev(), qwenCode(), geminiCLI(), copilot(), droid(), crush(),
		cursor(), zed(), aider(), sdk(),
	}
}

// ByName returns the client with a name or id.
func ByName(name string) (Client, error) {
	wanted := strings.ToLower(strings.TrimSpace(name))
	var known []string
	for _, client := range Clients() {
		if client.ID == wanted || slices.Contains(client.Names, wanted) {
			return client, nil
		}
		known = append(known, client.ID)
	}
	return Client{}, fmt.Errorf("no client is called %q: there are %s", name, strings.Join(known, ", "))
}

// Found returns the clients in use on this machine whose files can be set up.
func (c *Connector) Found() []Client {
	var used []Client
	for _, client := range Clients() {
		if client.files != nil && c.isUsed(client) {
			used = append(used, client)
		}
	}
	return used
}

func (c *Connector) isUsed(client Client) bool {
	if slices.ContainsFunc(client.Runs, func(name string) bool { return c.Place.Program(name) != "" }) {
		return true
	}
	return client.marks != nil && slices.ContainsFunc(client.marks(c.Place), func(path string) bool {
		_, err := follow(path)
		if err != nil {
			return false
		}
		return exists(path)
	})
}

// showKey is the command that prints the key, with its arguments.
func (s Setup) showKey(client string, place Place) []string {
	if s.Saved || s.once {
		return []string{s.Program, "key", "show", "--server", s.Server}
	}
	return []string{s.Program, "key", "show", "--file", place.keyFile(client)}
}

// recallServer is the command line of the server of the recall tools.
func (s Setup) recallServer(client string, place Place) []string {
	command := []string{s.Program, "mcp", "--server", s.Server}
	if !s.Saved && !s.once {
		command = append(command, "--file", place.keyFile(client))
	}
	return command
}

// keyFile returns the key file of a client that reads the key from a file, or has a key other than the
// saved login's.
func (p Place) keyFile(client string) string { return p.state(client + ".key") }

// withKeyFile adds the key file to the files of a client, if the client uses it.
func (s Setup) withKeyFile(place Place, client string, always bool, files ...File) []File {
	if s.Saved && !always {
		return files
	}
	return append([]File{{Path: place.keyFile(client), Kind: Text, Secret: true, Entries: []Entry{set(s.Key, "value")}}}, files...)
}

// ShellLine returns a command as a line for the shell of the system.
func ShellLine(command []string) string {
	quoted := make([]string, len(command))
	for i, word := range command {
		quoted[i] = word
		switch {
		case strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@") == "":
		case runtime.GOOS == "windows":
			quoted[i] = `"` + word + `"`
		default:
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// stdioServer is the entry of a server of recall tools in most clients' format.
type stdioServer struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Tools   []string `json:"tools,omitempty"`
}

func (s Setup) stdioServer(kind, client string, place Place) stdioServer {
	command := s.recallServer(client, place)
	return stdioServer{Type: kind, Command: command[0], Args: command[1:]}
}
