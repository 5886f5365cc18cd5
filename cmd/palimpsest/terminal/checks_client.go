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

// clients checks every client in use on this machine: whether its setup matches connect's for the login,
// with the login's key, and whether another file or the shell overrides it.
func (d *diagnosis) clients(login credential.Login) {
	place, err := d.Here()
	if err != nil {
		d.note("clients", Failed, err.Error(), "set HOME, and start this in a folder that exists")
		return
	}
	isSetUp := d.connected(place, login)
	d.claudeCode(place, login.Server, isSetUp)
}

// connected checks the clients that connect has set up, and reports whether Claude Code is one. claudeCode
// reports the success of that one.
func (d *diagnosis) connected(place connect.Place, login credential.Login) (isSetUp bool) {
	connector := &connect.Connector{Place: place}
	names, err := connector.Connected()
	if err != nil {
		d.note("clients", Failed, err.Error(), "")
		return false
	}
	program, err := d.Program()
	if err != nil || login.Server == "" {
		return false // without a login there is nothing to compare
	}
	setup := connect.Setup{Server: login.Server, Key: login.Key, Saved: true, Program: program}
	for _, name := range names {
		client, err := connect.ByName(name)
		if err != nil {
			continue // from another version of this program
		}
		plan, err := connector.Plan(client, setup)
		own, isOwn := connector.Own(plan)
		if isOwn {
			plan, err = connector.Plan(client, own)
		}
		switch {
		case err != nil:
			d.note(name, Failed, err.Error(), "mend the file, and palimpsest connect "+name)
		case !plan.Again(): // only in a project, or another folder
		default:
			isSetUp = isSetUp || name == claudeCode
			d.setUp(connector, plan, isOwn)
		}
	}
	return isSetUp
}

// setUp checks one client, and repairs it if --fix is set and the user agrees.
func (d *diagnosis) setUp(connector *connect.Connector, plan connect.Plan, isOwn bool) {
	name, files := plan.Client.ID, strings.Join(plan.Targets(), ", ")
	with := "the login, with its key"
	if isOwn {
		with = "a key of its own, which was given to palimpsest connect"
	}
	switch {
	case !plan.Needed():
		if name != claudeCode {
			d.note(name, OK, "set up for "+with, "")
		}
	case !d.fix || d.asks && !d.mayRepair(plan):
		d.note(name, Failed, "not set up for "+with+": an entry differs in "+files, "palimpsest doctor --fix, or palimpsest connect "+name)
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

// mayRepair shows the changes, and asks.
func (d *diagnosis) mayRepair(plan connect.Plan) bool {
	for _, change := range plan.Changes {
		fmt.Fprint(d.Out, change.Diff())
	}
	return d.ask("Write this for " + plan.Client.Title + "?")
}

const claudeCode = "claude-code"

// claudeCode checks Claude Code's settings: the user's file, the project's files, which override it, and
// the shell, which files override.
func (d *diagnosis) claudeCode(place connect.Place, server string, isSetUp bool) {
	folder := cmp.Or(place.Env("CLAUDE_CONFIG_DIR"), filepath.Join(place.Home, ".claude"))
	if _, err := os.Stat(folder); err != nil {
		d.note(claudeCode, Skipped, "it is not installed for this person", "")
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
			d.note(claudeCode, Failed, fmt.Sprintf("%s cannot be read: %v", file, err), "mend the file; Claude Code ignores it whole")
			return
		}
		maps.Copy(env, set)
		for name := range set {
			from[name] = file
		}
	}
	if isSetUp && d.says(claudeCode) || d.leads(place, env, from, server, isSetUp) {
		d.setting(place, env, "tool search", "ENABLE_TOOL_SEARCH", "true", "all MCP tools stand in every prompt")
		d.setting(place, env, "model list", "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1", "/model does not list the workspace's models")
	}
}

// cloud is a cloud whose form Claude Code can speak.
type cloud struct{ name, uses, baseURL string }

// clouds lists them with the variables that choose them.
func clouds() []cloud {
	return []cloud{
		{"Amazon Bedrock", "CLAUDE_CODE_USE_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL"}, {"Google Cloud", "CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_VERTEX_BASE_URL"},
		{"Microsoft Foundry", "CLAUDE_CODE_USE_FOUNDRY", "ANTHROPIC_FOUNDRY_BASE_URL"}, {"Claude Platform on AWS", "CLAUDE_CODE_USE_ANTHROPIC_AWS", "ANTHROPIC_AWS_BASE_URL"},
		{"Claude Platform on Google Cloud", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "ANTHROPIC_GOOGLE_CLOUD_BASE_URL"},
	}
}

// leads checks where Claude Code sends its requests, and reports whether they go to the proxy.
func (d *diagnosis) leads(place connect.Place, env, from map[string]string, server string, isSetUp bool) bool {
	set := func(name string) (value, where string) {
		if value = env[name]; value != "" {
			return value, from[name]
		}
		return place.Env(name), "the shell"
	}
	for _, cloud := range clouds() {
		isOn, _ := set(cloud.uses)
		if url, where := set(cloud.baseURL); on(isOn) && server != "" && strings.HasPrefix(strings.TrimRight(url, "/"), server) {
			d.note(claudeCode, OK, fmt.Sprintf("%s sends it to %s, in the form of %s", where, url, cloud.name), "")
			return true
		}
	}
	url, where := set("ANTHROPIC_BASE_URL")
	switch {
	case url == "":
		d.note(claudeCode, Failed, "it does not use the proxy", "palimpsest connect claude-code")
		return false
	case server != "" && !strings.HasPrefix(strings.TrimRight(url, "/"), server):
		d.note(claudeCode, Failed, fmt.Sprintf("%s sends it to %s", where, url), "remove ANTHROPIC_BASE_URL there, or palimpsest connect claude-code")
		return false
	case where == "the shell":
		d.note(claudeCode, Warning, "only this shell sends it to the proxy; background agents do not inherit that", "palimpsest connect claude-code")
	case isSetUp:
		d.note(claudeCode, OK, fmt.Sprintf("%s sends it to %s, as palimpsest connect set it up", where, url), "")
	default:
		d.note(claudeCode, OK, fmt.Sprintf("%s sends it to %s", where, url), "")
	}
	for _, cloud := range clouds() {
		if on(env[cloud.uses]) || env[cloud.uses] == "" && on(place.Env(cloud.uses)) {
			d.note(claudeCode, Failed, cloud.uses+" sends it past the proxy", "unset "+cloud.uses)
		}
	}
	return true
}

// setting checks whether a setting is on that Claude Code turns off behind another base URL.
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

// on reports whether Claude Code treats a value as true.
func on(value string) bool {
	value = strings.ToLower(value)
	return value != "" && value != "0" && value != "false" && value != "no" && value != "off"
}

// envOf returns the environment that a settings file sets; nil if it does not exist.
func envOf(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a nil map is an empty one
	}
	if err != nil {
		return nil, err
	}
	var settings struct {
		Env map[string]string `json:"env"`
	}
	return settings.Env, json.Unmarshal(content, &settings)
}
