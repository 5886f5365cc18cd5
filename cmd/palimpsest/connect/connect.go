package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Kind is the kind of a file.
type Kind string

// The kinds of files that clients have.
const (
	JSON   Kind = "json"
	TOML   Kind = "toml"
	YAML   Kind = "yaml"
	Dotenv Kind = "dotenv"
	Text   Kind = "text" // holds a single value
)

func (k Kind) format() format {
	switch k {
	case TOML:
		return format{tomlFormat{}.parse, tomlFormat{}.set, tomlFormat{}.remove}
	case YAML:
		return format{yamlFormat{}.parse, yamlFormat{}.set, yamlFormat{}.remove}
	case Dotenv:
		return format{dotenvFormat{}.parse, dotenvFormat{}.set, dotenvFormat{}.remove}
	case Text:
		return format{textFormat{}.parse, textFormat{}.set, textFormat{}.remove}
	case JSON:
	}
	return format{jsonFormat{}.parse, jsonFormat{}.set, jsonFormat{}.remove}
}

// Setup holds the values to set clients up with.
type Setup struct {
	Server string // base URL without a slash at its end
	Key    string // the API key

	// Saved says that the key is the saved login's, which the program can read again.
	Saved bool

	// Program is the path by which clients start this program.
	Program string

	// InProject sets up a project's files instead of the user's.
	InProject bool

	// once says that the client is started for one run, with the key in its environment.
	once bool
}

// Connector sets clients up and reverts that.
type Connector struct {
	Place Place
	disk  disk
}

// Plan holds the changes that set a client up.
type Plan struct {
	Client  Client
	Changes []Change
	Notes   []string // for the user to know
	Steps   []string // for the user to do
	setup   Setup
}

// Change is a file before and after.
type Change struct {
	File
	now    found
	base   original
	after  []byte
	last   *record
	hidden string // the key, never shown
}

// Plan returns the changes that set a client up. It does not write them.
func (c *Connector) Plan(client Client, setup Setup) (Plan, error) {
	plan := Plan{Client: client, setup: setup}
	place := c.Place
	if client.steps != nil {
		plan.Steps = client.steps(place, setup)
	}
	var files []File
	switch {
	case setup.InProject && client.inProject == nil:
		return Plan{}, fmt.Errorf("%s has no settings of a project that can lead to the proxy: leave --project out", client.Title)
	case setup.InProject:
		files = client.inProject(place, setup)
	case client.files != nil:
		files = client.files(place, setup)
	}
	for _, file := range files {
		change, err := c.change(client, file, setup)
		if err != nil {
			return Plan{}, err
		}
		plan.Changes = append(plan.Changes, change)
		plan.Notes = append(plan.Notes, c.overrides(file)...)
	}
	for _, name := range client.shell {
		if place.Env(name) != "" {
			plan.Notes = append(plan.Notes, fmt.Sprintf("The shell sets %s, which leads %s elsewhere: unset it.", name, client.Title))
		}
	}
	return plan, nil
}

// change computes the new content of a file.
func (c *Connector) change(client Client, file File, setup Setup) (Change, error) {
	now, err := c.disk.read(file.Path)
	if err != nil {
		return Change{}, err
	}
	change := Change{File: file, now: now, hidden: setup.Key}
	if change.last, err = c.lastRecord(client.ID, now.path); err != nil {
		return Change{}, err
	}
	change.base = original{content: now.content, existed: now.exists()}
	if now.exists() {
		change.base.mode = now.about.Mode().Perm()
	}
	if change.last != nil {
		if change.base, err = change.last.original(now); err != nil {
			return Change{}, err
		}
	}
	text := change.base.content
	if len(strings.TrimSpace(string(text))) == 0 && file.start != "" {
		text = []byte(file.start)
	}
	if content, err := file.Kind.format().parse(text); err == nil {
		change.Entries = slices.DeleteFunc(slices.Clone(file.Entries), func(entry Entry) bool {
			_, there := lookUp(content, entry.Path)
			return there && entry.IfAbsent
		})
	}
	if change.after, err = put(file.Kind.format(), text, change.Entries); err != nil {
		return Change{}, fmt.Errorf("%s: %w", now.path, err)
	}
	if change.isNeeded() {
		err = now.writable()
	}
	return change, err
}

func (c Change) isNeeded() bool {
	return string(c.after) != string(c.now.content) || c.now.exists() && c.mode() != c.now.about.Mode().Perm()
}

// mode returns the new mode of the file.
func (c Change) mode() fs.FileMode {
	mode := c.base.mode
	if !c.base.existed {
		mode = 0o644
		if c.Secret {
			mode = privateFile
		}
	}
	if c.Secret {
		mode &= 0o700
	}
	return mode
}

// Diff returns the change as a unified diff, without the key; "" if the file does not change.
func (c Change) Diff() string {
	diff := udiff.Unified(c.now.path, c.now.path, string(c.now.content), string(c.after))
	if c.hidden != "" {
		diff = strings.ReplaceAll(diff, c.hidden, "plm_…")
	}
	return diff
}

// Target returns the path to write, with symbolic links followed.
func (c Change) Target() string { return c.now.path }

// overrides lists the other files that override one.
func (c *Connector) overrides(file File) []string {
	var notes []string
	for _, above := range file.Above {
		other, err := c.disk.read(above)
		if err != nil || !other.exists() {
			continue
		}
		content, err := file.Kind.format().parse(other.content)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s cannot be read: %v", above, err))
			continue
		}
		for _, entry := range file.Entries {
			if value, is := lookUp(content, entry.Path); is && !same(value, plain(entry.Value)) {
				notes = append(notes, fmt.Sprintf("%s sets %s and wins over %s: take it out there, or connect with --project.", above, strings.Join(entry.Path, "."), file.Path))
			}
		}
	}
	return notes
}

// Needed reports whether a plan changes a file.
func (p Plan) Needed() bool { return slices.ContainsFunc(p.Changes, Change.isNeeded) }

// Again reports whether connect has written one of the plan's files before.
func (p Plan) Again() bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.last != nil })
}

// Own returns a client's setup if it uses a key given by the user instead of the login.
func (c *Connector) Own(plan Plan) (Setup, bool) {
	for _, change := range plan.Changes {
		if change.last == nil || change.last.Saved {
			continue
		}
		key, err := os.ReadFile(c.Place.keyFile(plan.Client.ID))
		return Setup{Server: change.last.Server, Key: strings.TrimSpace(string(key)), Program: plan.setup.Program}, err == nil
	}
	return Setup{}, false
}

// Targets returns the files that a plan changes.
func (p Plan) Targets() []string {
	var paths []string
	for _, change := range p.Changes {
		if change.isNeeded() {
			paths = append(paths, change.Target())
		}
	}
	return paths
}

// Apply writes the changes of a plan. It keeps a record of each file before it writes the file.
func (c *Connector) Apply(plan Plan) error {
	for _, change := range plan.Changes {
		if !change.isNeeded() {
			continue
		}
		now, err := c.disk.read(change.Path)
		if err != nil {
			return err
		}
		if now.path != change.now.path || string(now.content) != string(change.now.content) {
			return fmt.Errorf("%s has just been changed by someone else: run this again", change.now.path)
		}
		made, err := c.disk.folder(change.now.path)
		if err != nil {
			return err
		}
		one := record{
			Client: plan.Client.ID, Server: plan.setup.Server, Path: change.now.path, Kind: change.Kind,
			Existed: change.base.existed, Mode: change.base.mode, Made: made,
			Before: change.base.content, After: hashOf(change.after), Entries: change.Entries, Saved: plan.setup.Saved,
		}
		if change.last != nil {
			one.Was = change.last
			one.Was.Was = nil
			if one.Made == "" {
				one.Made = change.last.Made
			}
		}
		if err := c.keep(one); err != nil {
			return fmt.Errorf("keep a record of %s: %w", change.now.path, err)
		}
		if err := c.disk.replace(change.now.path, change.after, change.mode(), change.now.about); err != nil {
			return err
		}
	}
	return nil
}

// Restored is a file that Disconnect has restored.
type Restored struct {
	Client string   `json:"client"`
	Path   string   `json:"path"`
	Whole  bool     `json:"whole"` // all bytes are restored; otherwise only the entries were removed
	Left   []string `json:"left,omitempty"`
}

// Disconnect restores the files of a client, or of all clients if it is "".
func (c *Connector) Disconnect(client string) ([]Restored, error) {
	all, err := c.records(client)
	if err != nil {
		return nil, err
	}
	var restored []Restored
	var failed []error
	for _, one := range all {
		done, err := c.restore(one)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		restored = append(restored, done)
	}
	return restored, errors.Join(failed...)
}

// restore restores a file and removes its record.
func (c *Connector) restore(one record) (Restored, error) {
	done := Restored{Client: one.Client, Path: one.Path}
	now, err := c.disk.read(one.Path)
	if err != nil {
		return done, err
	}
	was, err := one.original(now)
	if err != nil {
		return done, err
	}
	done.Whole, done.Left = was.whole, was.left
	switch {
	case !was.existed:
		err = c.disk.remove(now.path, one.Made)
	case string(was.content) != string(now.content) || was.mode != now.about.Mode().Perm():
		if err = now.writable(); err == nil {
			err = c.disk.replace(now.path, was.content, was.mode, now.about)
		}
	}
	if err != nil {
		return done, err
	}
	_ = c.disk.remove(one.Path+newFile, "") // left by a killed process
	return done, c.disk.remove(c.recordOf(one.Client, one.Path), filepath.Dir(c.Place.state()))
}

// Connected returns the ids of the clients set up by connect.
func (c *Connector) Connected() ([]string, error) {
	all, err := c.records("")
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, one := range all {
		ids = append(ids, one.Client)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
