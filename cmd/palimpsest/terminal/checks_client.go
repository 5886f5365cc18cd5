package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// places finds the folders that clients read their settings from.
func (d *diagnosis) places() error {
	var err error
	if d.home, err = os.UserHomeDir(); err != nil {
		return fmt.Errorf("find your home folder: %w", err)
	}
	if d.work, err = os.Getwd(); err != nil {
		return fmt.Errorf("find this folder: %w", err)
	}
	return nil
}

// claudeCode looks at what Claude Code reads: the person's file, those of the project, which win over it, and
// the shell, over which files win.
func (d *diagnosis) claudeCode(server string) {
	folder := d.Env("CLAUDE_CONFIG_DIR")
	if folder == "" {
		folder = filepath.Join(d.home, ".claude")
	}
	if _, err := os.Stat(folder); err != nil {
		d.note("claude-code", Skipped, "it is not installed for this person", "")
		return
	}
	files := []string{
		filepath.Join(folder, "settings.json"),
		filepath.Join(d.work, ".claude", "settings.json"), filepath.Join(d.work, ".claude", "settings.local.json"),
	}
	env, from := map[string]string{}, map[string]string{}
	for _, file := range files {
		set, err := envOf(file)
		if err != nil {
			d.note("claude-code", Failed, fmt.Sprintf("%s cannot be read: %v", file, err), "mend the file; Claude Code ignores it whole")
			return
		}
		maps.Copy(env, set)
		for name := range set {
			from[name] = file
		}
	}
	url, where := env["ANTHROPIC_BASE_URL"], from["ANTHROPIC_BASE_URL"]
	if url == "" {
		url, where = d.Env("ANTHROPIC_BASE_URL"), "the shell"
	}
	switch {
	case url == "":
		d.note("claude-code", Failed, "it does not use the proxy", "palimpsest connect claude-code")
		return
	case server != "" && !strings.HasPrefix(strings.TrimRight(url, "/"), server):
		d.note("claude-code", Failed, fmt.Sprintf("%s sends it to %s", where, url), "remove ANTHROPIC_BASE_URL there, or palimpsest connect claude-code")
		return
	case where == "the shell":
		d.note("claude-code", Warning, "only this shell sends it to the proxy; background agents do not inherit that", "palimpsest connect claude-code")
	default:
		d.note("claude-code", OK, fmt.Sprintf("%s sends it to %s", where, url), "")
	}
	for _, name := range []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"} {
		if on(env[name]) || env[name] == "" && on(d.Env(name)) {
			d.note("claude-code", Failed, name+" sends it past the proxy", "unset "+name)
		}
	}
	d.setting(env, "tool search", "ENABLE_TOOL_SEARCH", "true", "all MCP tools stand in every prompt")
	d.setting(env, "model list", "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1", "/model does not list the workspace's models")
}

// setting looks whether a setting that Claude Code turns off behind another base URL is on.
func (d *diagnosis) setting(env map[string]string, name, variable, value, without string) {
	set, is := env[variable]
	if !is {
		set = d.Env(variable)
	}
	if on(set) {
		d.note(name, OK, variable+"="+set, "")
		return
	}
	d.note(name, Warning, variable+" is off: "+without, "set "+variable+" to "+value+", or palimpsest connect claude-code")
}

// on reports whether Claude Code takes a value for yes.
func on(value string) bool {
	value = strings.ToLower(value)
	return value != "" && value != "0" && value != "false" && value != "no" && value != "off"
}

// envOf returns the environment that a file of settings sets; none if it does not exist.
func envOf(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var settings struct {
		Env map[string]string `json:"env"`
	}
	return settings.Env, json.Unmarshal(content, &settings)
}
