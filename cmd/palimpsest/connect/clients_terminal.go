package connect

import (
	"runtime"
	"strings"
)

// claudeSettings are the entries of Claude Code's settings.json.
func claudeSettings(place Place, setup Setup) []Entry {
	const helper = "Claude Code asks for the key here; it stands in no file."
	key := setup.showKey("claude-code", place)
	if setup.InProject {
		key[0] = "palimpsest" // the same path for everyone in the project
	}
	return []Entry{
		set(ShellLine(key), "apiKeyHelper").because(helper),
		set(setup.Server, "env", "ANTHROPIC_BASE_URL"),
		set("", "env", "ANTHROPIC_API_KEY").because("A key that the shell exports would win over the helper's."),
		set("", "env", "ANTHROPIC_AUTH_TOKEN").because("So would a token."),
		set("true", "env", "ENABLE_TOOL_SEARCH").because("Tools of MCP servers are looked up when they are needed, in place of standing in every prompt."),
		set("1", "env", "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY").because("/model lists the workspace's models."),
		set("1", "env", "CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING").because("Long arguments of tools are streamed as they are written."),
		set("1", "env", "CLAUDE_CODE_GATEWAY_HINT_HEADERS").because("Headers say which requests are compactions."),
	}
}

// claudeStatusLine is a command that prints Claude Code's status line.
type claudeStatusLine struct {
	Type    string `json:"type"`
	Command string `json:"command"`
}

func claudeCode() Client {
	return Client{
		ID: "claude-code", Title: "Claude Code", Names: []string{"claude", "claudecode"}, Runs: []string{"claude"},
		Changed: []Difference{
			{"All tools of MCP servers stand in every prompt.", "`ENABLE_TOOL_SEARCH=true`"},
			{"`/model` lists only Claude Code's own models.", "`CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY=1`"},
			{"Arguments of tools arrive in one piece, at their end.", "`CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING=1`"},
			{"Nothing says which requests are compactions.", "`CLAUDE_CODE_GATEWAY_HINT_HEADERS=1`"},
		},
		marks: func(p Place) []string { return []string{p.in("CLAUDE_CONFIG_DIR", ".claude")} },
		files: func(p Place, s Setup) []File {
			servers := p.home(".claude.json")
			if folder := p.Env("CLAUDE_CONFIG_DIR"); folder != "" {
				servers = p.in("CLAUDE_CONFIG_DIR", "", ".claude.json")
			}
			status := set(claudeStatusLine{"command", statusLine(s.Program)}, "statusLine").
				because("The status line shows the context and what was saved.")
			status.IfAbsent = true
			return s.withKeyFile(p, "claude-code", false,
				File{
					Path: p.in("CLAUDE_CONFIG_DIR", ".claude", "settings.json"), Kind: JSON, Entries: append(claudeSettings(p, s), status),
					Above: []string{p.project(".claude", "settings.json"), p.project(".claude", "settings.local.json"), p.managedClaude()},
				},
				File{Path: servers, Kind: JSON, Entries: []Entry{set(s.stdioServer("stdio", "claude-code", p), "mcpServers", "palimpsest")}, Secret: true},
			)
		},
		inProject: func(p Place, s Setup) []File {
			s.Saved = true // each member's own login
			return []File{{
				Path: p.project(".claude", "settings.json"), Kind: JSON, Entries: claudeSettings(p, s),
				Above: []string{p.project(".claude", "settings.local.json"), p.managedClaude()},
			}}
		},
		launch: func(s Setup) Launch {
			settings := nestedEntries(claudeSettings(Place{}, s))
			servers := nestedEntries([]Entry{set(s.stdioServer("stdio", "", Place{}), "mcpServers", "palimpsest")})
			return Launch{Arguments: []string{"--settings", string(settings), "--mcp-config=" + string(servers)}}
		},
		shell: []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"},
	}
}

// statusLine returns the shell's command for the status line. Without garbage collection a run this short
// takes less time, and much less where the machine is busy. A shell of Windows sets no variable this way.
func statusLine(program string) string {
	line := ShellLine([]string{program, "statusline"})
	if runtime.GOOS == "windows" {
		return line
	}
	return "GOGC=off " + line
}

// managedClaude is the file of Claude Code's settings for administrators.
func (p Place) managedClaude() string {
	switch p.OS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

func claudeCodeAction() Client {
	return Client{
		ID: "claude-code-action", Title: "Claude Code as a GitHub Action", Names: []string{"github-action"},
		steps: func(_ Place, s Setup) []string {
			return []string{
				"Store an API key as the repository's secret PALIMPSEST_KEY: gh secret set PALIMPSEST_KEY",
				"The proxy's address must be one that GitHub reaches, not " + s.Server + " if that is on your machine.",
				"In the workflow:\n" + `- uses: anthropics/claude-code-action@v1
  with:
    anthropic_api_key: ${{ secrets.PALIMPSEST_KEY }}
  env:
    ANTHROPIC_BASE_URL: ` + s.Server + `
    ENABLE_TOOL_SEARCH: "true"
    CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING: "1"
    CLAUDE_CODE_GATEWAY_HINT_HEADERS: "1"`,
			}
		},
	}
}

// codexProvider is a provider of models in Codex's config.toml.
type codexProvider struct {
	Name string    `json:"name"`
	URL  string    `json:"base_url"`
	Wire string    `json:"wire_api"`
	Auth codexAuth `json:"auth"`
}

// codexAuth is a command that prints a key.
type codexAuth struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func codexEntries(p Place, s Setup) []Entry {
	key := s.showKey("codex", p)
	return []Entry{
		set("palimpsest", "model_provider"),
		set(codexProvider{Name: "Palimpsest", URL: s.Server + "/v1", Wire: "responses", Auth: codexAuth{key[0], key[1:]}}, "model_providers", "palimpsest").
			because("Codex asks the command for the key; it stands in no file."),
		set(s.stdioServer("", "codex", p), "mcp_servers", "palimpsest"),
	}
}

func codex() Client {
	return Client{
		ID: "codex", Title: "Codex", Names: []string{"openai-codex"}, Runs: []string{"codex"},
		Changed: []Difference{
			{"With a provider of its own, as here, Codex compacts the history itself. With `openai_base_url` OpenAI does, and no one can read the result.", "nothing to reset"},
			{"A provider of its own has no WebSocket: each turn is a request.", "nothing to reset"},
		},
		marks: func(p Place) []string { return []string{p.in("CODEX_HOME", ".codex")} },
		files: func(p Place, s Setup) []File {
			return s.withKeyFile(p, "codex", false, File{
				Path: p.in("CODEX_HOME", ".codex", "config.toml"), Kind: TOML, Entries: codexEntries(p, s),
				Above: append(p.glob(p.in("CODEX_HOME", ".codex", "*.config.toml")), "/etc/codex/managed_config.toml"),
			})
		},
		launch: func(s Setup) Launch {
			var launch Launch
			for _, entry := range codexEntries(Place{}, s) {
				launch.Arguments = append(launch.Arguments, "-c", strings.Join(entry.Path, ".")+"="+tomlValue(entry.Value))
			}
			return launch
		},
	}
}

// keyOf returns the key in opencode's and Kilo's syntax.
func (s Setup) keyOf(client string, p Place) string {
	if s.once || s.InProject {
		return "{env:PALIMPSEST_KEY}"
	}
	return "{file:" + p.keyFile(client) + "}"
}

type openCodeOptions struct {
	URL string `json:"baseURL"`
	Key string `json:"apiKey"`
}

type openCodeServer struct {
	Type    string   `json:"type"`
	Command []string `json:"command"`
}

func openCodeEntries(client string, p Place, s Setup) []Entry {
	options := openCodeOptions{URL: s.Server + "/v1", Key: s.keyOf(client, p)}
	entries := []Entry{
		set(options.URL, "provider", "anthropic", "options", "baseURL"), set(options.Key, "provider", "anthropic", "options", "apiKey"),
		set(options.URL, "provider", "openai", "options", "baseURL"), set(options.Key, "provider", "openai", "options", "apiKey"),
	}
	if s.InProject {
		return entries
	}
	return append(entries, set(openCodeServer{"local", s.recallServer(client, p)}, "mcp", "palimpsest"))
}

func openCode() Client {
	return openCodeLike("opencode", "opencode", "opencode", "OPENCODE_CONFIG_CONTENT", `{
  "$schema": "https://opencode.ai/config.json"
}
`)
}

func kilo() Client {
	client := openCodeLike("kilo", "Kilo", "kilo", "KILO_CONFIG_CONTENT", "")
	client.Names = []string{"kilocode", "kilo-code"}
	return client
}

// openCodeLike is opencode or a fork of it.
func openCodeLike(id, title, name, content, start string) Client {
	file := name + ".json"
	commented := func(_ Place, path func(...string) string, dir ...string) string { // an existing .jsonc wins
		if whole := path(append(dir, file+"c")...); exists(whole) && !exists(path(append(dir, file)...)) {
			return whole
		}
		return path(append(dir, file)...)
	}
	return Client{
		ID: id, Title: title, Runs: []string{name},
		Changed: []Difference{{"Nothing: it keeps its own list of models and their windows.", "nothing to reset"}},
		marks:   func(p Place) []string { return []string{p.config(name)} },
		files: func(p Place, s Setup) []File {
			return s.withKeyFile(p, id, true, File{
				Path: commented(p, p.config, name), Kind: JSON, Entries: openCodeEntries(id, p, s), start: start,
				Above: []string{p.project(file), p.project(file + "c")},
			})
		},
		inProject: func(p Place, s Setup) []File {
			return []File{{Path: commented(p, p.project), Kind: JSON, Entries: openCodeEntries(id, p, s), start: start}}
		},
		launch: func(s Setup) Launch {
			return Launch{Environment: []string{content + "=" + string(nestedEntries(openCodeEntries(id, Place{}, s)))}}
		},
	}
}
