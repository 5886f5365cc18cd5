package connect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// record keeps the state of a file from before a change, so that the change can be reverted.
type record struct {
	Client  string      `json:"client"`
	Server  string      `json:"server"`
	Path    string      `json:"path"` // with symbolic links followed
	Kind    Kind        `json:"kind"`
	Existed bool        `json:"existed"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	Made    string      `json:"made,omitempty"` // the topmost folder created for the file
	Before  []byte      `json:"before"`
	After   string      `json:"after"` // hash of the written file
	Entries []Entry     `json:"entries"`
	Saved   bool        `json:"saved"` // the key is the login's

	// Was is the previous record, until the file has been written again.
	Was *record `json:"was,omitempty"`
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// recordOf returns the path of the record of a client's file.
func (c *Connector) recordOf(client, path string) string {
	return c.Place.state(client + "-" + hashOf([]byte(path))[:12] + ".json")
}

// records returns the records of a client, or of all if it is "".
func (c *Connector) records(client string) ([]record, error) {
	names, err := filepath.Glob(c.Place.state(client + "*.json"))
	if err != nil {
		return nil, err
	}
	var all []record
	for _, name := range names {
		one, err := c.readRecord(name)
		if err != nil {
			return nil, err
		}
		if client == "" || one.Client == client {
			all = append(all, one)
		}
	}
	return all, nil
}

func (c *Connector) readRecord(name string) (record, error) {
	var one record
	content, err := os.ReadFile(name)
	if err != nil {
		return record{}, err
	}
	if err := json.Unmarshal(content, &one); err != nil {
		return record{}, fmt.Errorf("%s is damaged: %w; delete it, and undo the change by hand as docs/clients.md says", name, err)
	}
	return one, nil
}

// lastRecord returns the record of a client's file, or nil.
func (c *Connector) lastRecord(client, path string) (*record, error) {
	one, err := c.readRecord(c.recordOf(client, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing was changed yet
	}
	if err != nil {
		return nil, err
	}
	return &one, nil
}

// keep writes a record.
func (c *Connector) keep(one record) error {
	content, err := json.Marshal(one)
	if err != nil {
		return err
	}
	path := c.recordOf(one.Client, one.Path)
	if _, err := c.disk.folder(path); err != nil {
		return err
	}
	return c.disk.replace(path, content, privateFile, nil)
}

// original is a file's state before a change.
type original struct {
	content []byte
	existed bool
	mode    fs.FileMode
	left    []string // paths of entries that someone has changed since
	whole   bool     // all bytes are restored
}

// original returns a file's state before the change, from its record and its current state.
func (r *record) original(now found) (original, error) {
	for one := r; one != nil; one = one.Was {
		if now.exists() && hashOf(now.content) == one.After || now.exists() == one.Existed && string(now.content) == string(one.Before) {
			return original{content: one.Before, existed: one.Existed, mode: one.Mode, whole: true}, nil
		}
	}
	if !now.exists() {
		return original{}, nil
	}
	text, left := now.content, []string(nil)
	for one := r; one != nil; one = one.Was {
		var err error
		if text, left, err = takeOut(one.Kind.format(), text, one.Before, one.Entries); err != nil {
			return original{}, fmt.Errorf("%s: %w", r.Path, err)
		}
	}
	content, err := r.Kind.format().parse(text)
	if err == nil && len(content) == 0 && !r.Existed && !slices.ContainsFunc(strings.Split(string(text), "\n"), comments) {
		return original{whole: true}, nil
	}
	return original{content: text, existed: true, mode: now.about.Mode().Perm(), left: left}, nil
}

// comments reports whether a line contains a comment.
func comments(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*")
}
