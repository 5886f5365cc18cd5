package connect

import (
	"bytes"
	"fmt"
	"slices"
)

// Rekey replaces an old key with a new one wherever connect has written it, and returns the changed files.
func (c *Connector) Rekey(before, after string) ([]string, error) {
	all, err := c.records("")
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, one := range all {
		entries := slices.Clone(one.Entries)
		holds := false
		for i, entry := range entries {
			if bytes.Contains(entry.Value, []byte(before)) {
				holds = true
				entries[i].Value = bytes.ReplaceAll(entry.Value, []byte(before), []byte(after))
			}
		}
		if !holds {
			continue
		}
		client := Client{ID: one.Client}
		setup := Setup{Server: one.Server, Key: after, Saved: one.Saved}
		change, err := c.change(client, File{Path: one.Path, Kind: one.Kind, Entries: entries, Secret: true}, setup)
		if err == nil {
			err = c.Apply(Plan{Client: client, Changes: []Change{change}, setup: setup})
		}
		if err != nil {
			return changed, fmt.Errorf("put the new key into %s: %w", one.Path, err)
		}
		changed = append(changed, one.Path)
	}
	return changed, nil
}
