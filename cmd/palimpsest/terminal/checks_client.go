package terminal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/cmd/palimpsest/credential"
)

// clients looks at every client that is used on this machine: whether it is set up as connect does it for
// the login, with the login's key, and whether another file or the shell wins over that.
func (d *diagnosis) clients(login credential.Login) {
	place, err := d.Here()
	if err != nil {
		d.note("clients", Failed, err.Error(), "set HOME, and start this in a folder that exists")
		return
	}
	d.connected(place, login)
	d.claudeCode(place, login.Server)
}

// connected looks at the clients that connect has set up.
func (d *diagnosis) connected(place connect.Place, login credential.Login) {
	connector := &connect.Connector{Place: place}
	names, err := connector.Connected()
	if err != nil {
		d.note("clients", Failed, err.Error(), "")
		return
	}
	program, err := d.Program()
	if err != nil || login.Server == "" {
		return // nothing to compare with
	}
	setup := connect.Setup{Server: login.Server, Key: login.Key, Saved: login.KeyID != "", Program: program}
	for _, name := range names {
		client, err := connect.ByName(name)
		if err != nil {
			continue // of another version of this program
		}
		plan, err := connector.Plan(client, setup)
		switch {
		case err != nil:
			d.note(name, Failed, err.Error(), "mend the file, and palimpsest connect "+name)
		case !plan.Again(): // only in a project, or elsewhere than here
		default:
			d.setUp(connector, plan)
		}
	}
}

// setUp looks at one client, and repairs it if that is asked for.
func (d *diagnosis) setUp(connector *connect.Connector, plan connect.Plan) {
	name, files := plan.Client.ID, strings.Join(plan.Targets(), ", ")
	switch {
	case !plan.Needed():
		d.note(name, OK, "set up for the login, with its key", "")
	case !d.fix:
		d.note(name, Failed, "not set up for this login: its server, its key or an entry differs in "+files, "palimpsest doctor --fix, or palimpsest connect "+name)
	default:
		if err := connector.Apply(plan); err != nil {
			d.note(name, Failed, err.Error(), "palimpsest connect "+name)
		} else {
			d.note(name, OK, "repaired "+files, "")
		}
	}
	for _, note := range plan.Notes {
		d.note(name, Failed, "something else decides for it", note)
	}
}

// claudeCode looks at what Claude Code reads: the person's file, those of the project, which win over it, and
// the shell, over which files win.
func (d *diagnosis) claudeCode(place connect.Place, server string) {
	folder := cmp.Or(place.Env("CLAUDE_CONFIG_DIR"), filepath.Join(place.Home, ".claude"))
	if _, err := os.Stat(folder); err != nil {
		d.note("claude-code", Skipped, "it is not installed for this person", "")
		return
	}
	files := []string{
		filepath.Join(folder, "settings.json"),
		filepath.Join(place.Project, ".claude", "settings.json"), filepath.Join(place.Project, ".claude", "settings.local.json"),
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
		url, where = place.Env("ANTHROPIC_BASE_URL"), "the shell"
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
		if on(env[name]) || env[name] == "" && on(place.Env(name)) {
			d.note("claude-code", Failed, name+" sends it past the proxy", "unset "+name)
		}
	}
	d.setting(place, env, "tool search", "ENABLE_TOOL_SEARCH", "true", "all MCP tools stand in every prompt")
	d.setting(place, env, "model list", "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1", "/model does not list the workspace's models")
}

// setting looks whether a setting that Claude Code turns off behind another base URL is on.
func (d *diagnosis) setting(place connect.Place, env map[string]string, name, variable, value, without string) {
	set, is := env[variable]
	if !is {
		set = place.Env(variable)
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
