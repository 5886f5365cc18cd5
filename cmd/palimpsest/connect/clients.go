package connect

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Client is how one client is set up.
type Client struct {
	ID    string // what people type
	Title string
	Names []string // other names that people may type

	// Runs are the programs of the client, of which the first one that is there is started.
	Runs []string

	// Changed is what the client does differently behind a base URL of one's own.
	Changed []Difference

	// marks are folders and files that are there where the client is used.
	marks func(Place) []string

	// files are the user's files that set the client up; nil if it has none.
	files func(Place, Setup) []File

	// inProject are the project's files that do; nil if a project's cannot. They hold no key.
	inProject func(Place, Setup) []File

	// steps are what the user has to do.
	steps func(Place, Setup) []string

	// launch is how the client is started for one run; nil if it reads nothing but its files.
	launch func(Setup) Launch

	// shell are variables of the environment that lead the client elsewhere.
	shell []string
}

// Difference is what a client does differently behind a base URL of one's own, and what resets it.
type Difference struct{ What, Reset string }

// File is a file of a client and what must stand in it.
type File struct {
	Path    string
	Kind    Kind
	Entries []Entry

	// Secret says that the file holds the key: only its owner may read it.
	Secret bool

	// Above are files that win over this one where they hold the same entries.
	Above []string

	start string // the content of a file that is not there yet; "" if only the entries
}

// Launch is how a client is started for one run.
type Launch struct {
	Arguments   []string // before the user's
	Environment []string

	// Files are written into a temporary folder, by their names. "{folder}" in arguments and in
	// the environment stands for it.
	Files map[string]string
}

// Clients returns all clients that can be set up.
func Clients() []Client {
	return []Client{
		claudeCode(), claudeCodeAction(), codex(), openCode(), kilo(), pi(), cline(), continueDev(), qwenCode(), copilot(), droid(), crush(),
		cursor(), zed(), aider(), sdk(),
	}
}

// notServed are clients that speak an API which the proxy does not serve yet.
func notServed() map[string]string {
	return map[string]string{
		"gemini":     "Gemini CLI speaks the Gemini API, which is not served yet",
		"gemini-cli": "Gemini CLI speaks the Gemini API, which is not served yet",
	}
}

// ByName returns the client that a person names.
func ByName(name string) (Client, error) {
	wanted := strings.ToLower(strings.TrimSpace(name))
	var known []string
	for _, client := range Clients() {
		if client.ID == wanted || slices.Contains(client.Names, wanted) {
			return client, nil
		}
		known = append(known, client.ID)
	}
	if why, is := notServed()[wanted]; is {
		return Client{}, fmt.Errorf("%s", why)
	}
	return Client{}, fmt.Errorf("no client is called %q: there are %s", name, strings.Join(known, ", "))
}

// Found returns the clients that are used on this machine and have files that can be set up.
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

// recallServer is the command that is the server of the recall tools, with its arguments.
func (s Setup) recallServer(client string, place Place) []string {
	command := []string{s.Program, "mcp", "--server", s.Server}
	if !s.Saved && !s.once {
		command = append(command, "--file", place.keyFile(client))
	}
	return command
}

// keyFile returns the file with the key of a client that reads it from a file, or whose key is not
// that of the saved login.
func (p Place) keyFile(client string) string { return p.state(client + ".key") }

// withKeyFile adds the file with the key to the files of a client, if something reads it.
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

// stdioServer is a server of recall tools as most clients write it down.
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
