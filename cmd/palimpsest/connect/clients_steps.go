package connect

import (
	"strings"
)

func copilot() Client {
	environment := func(s Setup) []string {
		claude, _ := models()
		return []string{
			"COPILOT_PROVIDER_BASE_URL=" + s.Server, "COPILOT_PROVIDER_TYPE=anthropic",
			"COPILOT_PROVIDER_API_KEY=" + s.Key, "COPILOT_MODEL=" + claude.id,
		}
	}
	return Client{
		ID: "copilot", Title: "GitHub Copilot CLI", Names: []string{"copilot-cli", "github-copilot"}, Runs: []string{"copilot"},
		Changed: []Difference{{"It names no sessions: each subagent has one of its own, and so has what follows its own compaction.", "nothing resets it"}},
		marks:   func(p Place) []string { return []string{p.in("COPILOT_HOME", ".copilot")} },
		files: func(p Place, s Setup) []File {
			server := s.stdioServer("local", "copilot", p)
			server.Tools = []string{"*"}
			return s.withKeyFile(p, "copilot", false,
				File{Path: p.in("COPILOT_HOME", ".copilot", "mcp-config.json"), Kind: JSON, Entries: []Entry{set(server, "mcpServers", "palimpsest")}})
		},
		steps: func(p Place, s Setup) []string {
			return []string{"Copilot reads its provider from the environment alone. Start it with palimpsest run copilot, or put this into your shell's profile:\n" + exports(p, s, environment(s))}
		},
		launch: func(s Setup) Launch { return Launch{Environment: environment(s)} },
	}
}

func cursor() Client {
	return Client{
		ID: "cursor", Title: "Cursor",
		Changed: []Difference{{"Only models that Cursor lets you use with your own key go through it.", "nothing resets it"}},
		steps: func(p Place, s Setup) []string {
			return []string{
				"Cursor sends requests from its own servers, so the address must be a public https address, not 127.0.0.1.",
				"Cursor Settings → Models → API Keys: paste the API key into OpenAI API Key. This prints it: " + ShellLine(s.showKey("cursor", p)),
				"Switch on Override OpenAI Base URL and enter " + s.Server + "/v1",
				"For the recall tools, in ~/.cursor/mcp.json:\n" + string(indented(nestedEntries([]Entry{set(s.stdioServer("", "cursor", p), "mcpServers", "palimpsest")}))),
			}
		},
	}
}

func zed() Client {
	return Client{
		ID: "zed", Title: "Zed",
		Changed: []Difference{{"Zed's own models do not go through the proxy.", "choose one of Anthropic's or OpenAI's"}},
		steps: func(p Place, s Setup) []string {
			settings := []Entry{
				set(s.Server, "language_models", "anthropic", "api_url"), set(s.Server+"/v1", "language_models", "openai", "api_url"),
				set(s.stdioServer("", "zed", p), "context_servers", "palimpsest"),
			}
			return []string{
				"Open Zed's settings (zed: open settings file) and add:\n" + string(indented(nestedEntries(settings))),
				"Agent panel → Settings → LLM Providers: paste the API key for Anthropic and for OpenAI; Zed keeps it in the system's key store. This prints it: " + ShellLine(s.showKey("zed", p)),
			}
		},
	}
}

// libraries are the variables that Anthropic's and OpenAI's libraries read.
func libraries(s Setup) []string {
	return []string{
		"ANTHROPIC_BASE_URL=" + s.Server, "ANTHROPIC_AUTH_TOKEN=" + s.Key,
		"OPENAI_BASE_URL=" + s.Server + "/v1", "OPENAI_API_KEY=" + s.Key,
	}
}

func sdk() Client {
	return Client{
		ID: "sdk", Title: "Anthropic's and OpenAI's libraries", Names: []string{"env"},
		steps: func(p Place, s Setup) []string {
			return []string{"Set in the environment of your program:\n" + exports(p, s, libraries(s))}
		},
		launch: func(s Setup) Launch { return Launch{Environment: libraries(s)} },
	}
}

func aider() Client {
	environment := func(s Setup) []string {
		return []string{
			"ANTHROPIC_API_BASE=" + s.Server, "ANTHROPIC_API_KEY=" + s.Key,
			"OPENAI_API_BASE=" + s.Server + "/v1", "OPENAI_API_KEY=" + s.Key,
		}
	}
	return Client{
		ID: "aider", Title: "aider", Runs: []string{"aider"},
		Changed: []Difference{{"Nothing that is known.", "nothing to reset"}},
		steps: func(p Place, s Setup) []string {
			claude, gpt := models()
			return []string{
				"aider reads the key from the environment. Start it with palimpsest run aider, or put this into your shell's profile:\n" + exports(p, s, environment(s)),
				"Start it with --model anthropic/" + claude.id + " or --model openai/" + gpt.id,
			}
		},
		launch: func(s Setup) Launch { return Launch{Environment: environment(s)} },
	}
}

// exports returns the shell lines that set variables. They read the key without showing it.
func exports(p Place, s Setup, variables []string) string {
	show := ShellLine([]string{s.Program, "key", "show", "--server", s.Server})
	var lines []string
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case p.OS == "windows" && value == s.Key:
			lines = append(lines, "$env:"+name+" = & "+show)
		case p.OS == "windows":
			lines = append(lines, "$env:"+name+` = "`+value+`"`)
		case value == s.Key:
			lines = append(lines, "export "+name+`="$(`+show+`)"`)
		default:
			lines = append(lines, "export "+name+`="`+value+`"`)
		}
	}
	return strings.Join(lines, "\n")
}
