// Package credential keeps the login of the commands on a user's own machine: their server and its API key.
// The key is kept in the system's key store if there is one, otherwise in a file that only the user can
// read.
package credential

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNone is returned if there is no login on this machine.
var ErrNone = errors.New("not logged in: run palimpsest login URL, or set PALIMPSEST_URL and PALIMPSEST_KEY")

// A Login is the server of the commands and the API key for it.
type Login struct {
	Server    string // base URL without a slash at its end
	Workspace string // the workspace's name; "" if it came from the environment
	Key       string // the API key
	KeyID     string // the key's id; "" if it came from the environment
}

// Load returns the login of PALIMPSEST_URL and PALIMPSEST_KEY, or else the saved one. It returns
// ErrNone if there is neither.
func Load() (Login, error) {
	server, key := os.Getenv("PALIMPSEST_URL"), os.Getenv("PALIMPSEST_KEY")
	if server != "" && key != "" {
		return Login{Server: strings.TrimRight(server, "/"), Key: key}, nil
	}
	if key != "" {
		return Login{}, errors.New("PALIMPSEST_KEY is set but PALIMPSEST_URL is not: set both, or neither")
	}
	store, err := user()
	if err != nil {
		return Login{}, err
	}
	return store.Load()
}

// Save saves a login for later commands, replacing the previous one.
func Save(login Login) error {
	store, err := user()
	if err != nil {
		return err
	}
	return store.Save(login)
}

// Delete removes the saved login. It succeeds without one, too.
func Delete() error {
	store, err := user()
	if err != nil {
		return err
	}
	return store.Delete()
}

// Dir returns the folder of the user's configuration of palimpsest.
func Dir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find your folder for configuration: %w", err)
	}
	return filepath.Join(dir, "palimpsest"), nil
}

func user() (Store, error) {
	dir, err := Dir()
	return Store{Dir: dir, Keys: system()}, err
}

// A Store keeps one login in a folder.
type Store struct {
	Dir  string
	Keys Keys // stores the key; if it is empty or fails, the file does
}

// file is the stored form of a saved login.
type file struct {
	Server    string `json:"server"`
	Workspace string `json:"workspace,omitempty"`
	KeyID     string `json:"key_id,omitempty"`
	Key       string `json:"key,omitempty"` // "" if the system's key store has it
}

func (s Store) path() string { return filepath.Join(s.Dir, "login.json") }

// Load returns the saved login, or ErrNone.
func (s Store) Load() (Login, error) {
	saved, err := s.read()
	if err != nil {
		return Login{}, err
	}
	login := Login{Server: saved.Server, Workspace: saved.Workspace, Key: saved.Key, KeyID: saved.KeyID}
	if login.Key != "" {
		return login, nil
	}
	if !s.Keys.present() {
		return Login{}, fmt.Errorf("the key of %s lies in the system's key store, which is not there now: log in again, or set PALIMPSEST_URL and PALIMPSEST_KEY", saved.Server)
	}
	if login.Key, err = s.Keys.Get(saved.Server); err != nil {
		return Login{}, fmt.Errorf("read the key of %s from the system's key store (unlock it, or log in again): %w", saved.Server, err)
	}
	return login, nil
}

// Save saves a login, replacing the previous one.
func (s Store) Save(login Login) error {
	before, err := s.read()
	if err == nil && before.Server != login.Server {
		s.forget(before)
	}
	saved := file{Server: login.Server, Workspace: login.Workspace, KeyID: login.KeyID}
	if !s.Keys.present() || s.Keys.Set(login.Server, login.Key) != nil {
		saved.Key = login.Key
	}
	return s.write(saved)
}

// Delete removes the saved login. It succeeds without one, too.
func (s Store) Delete() error {
	saved, err := s.read()
	if err == nil {
		s.forget(saved)
	}
	err = os.Remove(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// forget removes the key of a saved login from the system's key store. It ignores a failure, because a
// leftover key grants no access once the server has revoked it.
func (s Store) forget(saved file) {
	if s.Keys.present() && saved.Key == "" {
		_ = s.Keys.Delete(saved.Server)
	}
}

func (s Store) read() (file, error) {
	content, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return file{}, ErrNone
	}
	if err != nil {
		return file{}, fmt.Errorf("read the saved login: %w", err)
	}
	var saved file
	if err := json.Unmarshal(content, &saved); err != nil || saved.Server == "" {
		return file{}, fmt.Errorf("%s is damaged: delete it and log in again", s.path())
	}
	return saved, nil
}

// write replaces the file atomically. After a kill there is either the old one or the new one.
func (s Store) write(saved file) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("save the login: %w", err)
	}
	content, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return fmt.Errorf("save the login: %w", err)
	}
	next, err := os.CreateTemp(s.Dir, "login-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("save the login: %w", err)
	}
	_, err = next.Write(append(content, '\n'))
	err = errors.Join(err, next.Close())
	if err == nil {
		err = os.Rename(next.Name(), s.path())
	}
	if err != nil {
		_ = os.Remove(next.Name())
		return fmt.Errorf("save the login: %w", err)
	}
	return nil
}
