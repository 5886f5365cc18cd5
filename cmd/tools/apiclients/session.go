package apiclients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// session is one run of a client: its folders and its settings.
type session struct {
	install   string // folder of the packages
	home      string
	work      string // the client's project
	temporary string
	url       string // of the proxy, without /v1
	key       string // of the workspace
	provider  string // where the client's own credential goes; "" if it brings none
	window    int    // context window configured in the client, in tokens; 0: its own
	recalls   bool   // the client has the proxy's recall tools
	threads   bool   // the provider holds the client's conversation
	terminal  bool   // a person sits at the client
	tools     bool   // the client offers its tools for files and plans
	guide     Guide
	binary    string // the program, for commands on a user's machine
}

// newSession makes the folders of a session below root.
func newSession(root string) (*session, error) {
	s := &session{home: filepath.Join(root, "home"), work: filepath.Join(root, "work"), temporary: filepath.Join(root, "tmp")}
	for _, folder := range []string{s.home, s.work, s.temporary} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("folders of a session: %w", err)
		}
	}

	return s, nil
}

// write writes a file below the session's home.
func (s *session) write(name, text string) error {
	return writeBelow(s.home, name, text)
}

// writeJSON writes a value as a JSON file below the session's home.
func writeJSON[T any](s *session, name string, value T) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	return s.write(name, string(text))
}

func writeBelow(root, name, text string) error {
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil { //nolint:gosec // in the folder of the run
		return fmt.Errorf("write %s: %w", name, err)
	}

	return nil
}
