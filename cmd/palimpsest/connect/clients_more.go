package connect

import (
	"maps"
	"slices"

	"palimpsest/pipeline/tokens"
	"palimpsest/web/clients"
)

// model holds the data that clients need about a model they don't know.
type model struct {
	id                string
	title             string
	window, maxOutput int
}

// models are the models to enter if a client does not list them on its own. Their windows come from the
// catalog.
func models() (claude, gpt model) {
	known, err := tokens.NewModels()
	if err != nil {
		panic("connect: " + err.Error()) // the built-in catalog always parses
	}
	about := func(id, title string) model {
		found := known.Lookup(id)
		return model{id: id, title: title, window: found.InputLimit(0), maxOutput: found.MaxOutput}
	}
	return about(clients.Claude, "Claude through Palimpsest"), about(clients.GPT, "GPT through Palimpsest")
}

type piProvider struct {
	URL    string    `json:"baseUrl"`
	API    string    `json:"api"`
	Key    string    `json:"apiKey"`
	Models []piModel `json:"models"`
}

type piModel struct {
	ID        string `json:"id"`
	Reasoning bool   `json:"reasoning"`
	Window    int    `json:"contextWindow"`
	MaxOutput int    `json:"maxTokens"`
}

// piExtension registers providers with pi, including the data that pi needs about their models.
const piExtension = `export default function (pi) {
  for (const [name, provider] of Object.entries(providers)) {
    const models = provider.models.map((model) => ({
      name: model.id, input: ["text", "image"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, ...model,
    }));
    pi.registerProvider(name, { ...provider, models });
  }
}
`

func piProviders(p Place, s Setup) map[string]piProvider {
	claude, gpt := models()
	key := "!" + ShellLine(s.showKey("pi", p))
	return map[string]piProvider{
		"palimpsest-anthropic": {s.Server, "anthropic-messages", key, []piModel{{claude.id, true, claude.window, claude.maxOutput}}},
		"palimpsest-openai":    {s.Server + "/v1", "openai-responses", key, []piModel{{gpt.id, true, gpt.window, gpt.maxOutput}}},
	}
}

func pi() Client {
	return Client{
		ID: "pi", Title: "pi", Names: []string{"pi-coding-agent"}, Runs: []string{"pi"},
		Changed: []Difference{{"A provider of one's own lists only the models that stand in `models.json`.", "add models there; `connect` adds two"}},
		marks:   func(p Place) []string { return []string{p.in("PI_CODING_AGENT_DIR", ".pi/agent")} },
		files: func(p Place, s Setup) []File {
			var entries []Entry
			providers := piProviders(p, s)
			for _, name := range slices.Sorted(maps.Keys(providers)) {
				entries = append(entries, set(providers[name], "providers", name))
			}
			type server struct {
				stdioServer
				Exposure string `json:"exposure"`
			}
			return s.withKeyFile(p, "pi", false,
				File{Path: p.in("PI_CODING_AGENT_DIR", ".pi/agent", "models.json"), Kind: JSON, Entries: entries},
				File{
					Path: p.in("PI_CODING_AGENT_DIR", ".pi/agent", "mcp.json"), Kind: JSON,
					Entries: []Entry{set(server{s.stdioServer("", "pi", p), "direct"}, "mcpServers", "palimpsest").because("direct: the model may call the tools itself.")},
					Above:   []string{p.project(".pi", "mcp.json")},
				},
			)
		},
		steps: func(Place, Setup) []string {
			claude, _ := models()
			return []string{"Start it with: pi --provider palimpsest-anthropic --model " + claude.id + ", or choose with /model."}
		},
		launch: func(s Setup) Launch {
			extension := "const providers = " + string(encode(piProviders(Place{}, s))) + ";\n" + piExtension
			claude, _ := models()
			return Launch{
				Arguments: []string{"--extension", "{folder}/palimpsest.js", "--provider", "palimpsest-anthropic", "--model", claude.id},
				Files:     map[string]string{"palimpsest.js": extension},
			}
		},
	}
}

// clineSettings are a provider's settings. Cline ignores settings without a time.
type clineSettings struct {
	Settings clineProvider `json:"settings"`
	Updated  string        `json:"updatedAt"`
	Source   string        `json:"tokenSource"`
}

type clineProvider struct {
	Provider string `json:"provider"`
	Key      string `json:"apiKey"`
	Model    string `json:"model"`
	URL      string `json:"baseUrl"`
}

// clineProviders are the entries of Cline's providers.json.
func clineProviders(s Setup) []Entry {
	claude, _ := models()
	provider := clineProvider{"anthropic", s.Key, claude.id, s.Server + "/v1"}
	return []Entry{
		set(1, "version"),
		set("anthropic", "lastUsedProvider"),
		set(clineSettings{provider, "2026-01-01T00:00:00.000Z", "manual"}, "providers", "anthropic"),
	}
}

func cline() Client {
	return Client{
		ID: "cline", Title: "Cline", Runs: []string{"cline"},
		Changed: []Difference{{"It compacts by its own estimate, whatever usage the provider reports.", "`cline --compaction off`"}},
		marks:   func(p Place) []string { return []string{p.home(".cline")} },
		files: func(p Place, s Setup) []File {
			return s.withKeyFile(p, "cline", false,
				File{Path: p.home(".cline", "data", "settings", "providers.json"), Kind: JSON, Entries: clineProviders(s), Secret: true},
				File{Path: p.home(".cline", "data", "settings", "cline_mcp_settings.json"), Kind: JSON, Entries: []Entry{set(s.stdioServer("", "cline", p), "mcpServers", "palimpsest")}},
			)
		},
		launch: func(s Setup) Launch {
			return Launch{
				Environment: []string{"CLINE_PROVIDER_SETTINGS_PATH={folder}/providers.json"},
				Files:       map[string]string{"providers.json": string(nestedEntries(clineProviders(s)))},
			}
		},
	}
}

type continueModel struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	URL      string `json:"apiBase"`
	Key      string `json:"apiKey"`
}

type continueServer struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// continueStart is the required start of a config.yaml.
const continueStart = "name: Palimpsest\nversion: 1.0.0\nschema: v1\n"

func continueEntries(p Place, s Setup) []Entry {
	const key = "${{ secrets.PALIMPSEST_KEY }}"
	claude, gpt := models()
	command := s.recallServer("continue", p)
	return []Entry{
		set(continueModel{gpt.title, "openai", gpt.id, s.Server + "/v1", key}, "models", "name="+gpt.title),
		set(continueModel{claude.title, "anthropic", claude.id, s.Server + "/v1", key}, "models", "name="+claude.title),
		set(continueServer{"palimpsest", command[0], command[1:]}, "mcpServers", "name=palimpsest"),
	}
}

func continueDev() Client {
	return Client{
		ID: "continue", Title: "Continue", Names: []string{"continue-dev", "cn"}, Runs: []string{"cn"},
		Changed: []Difference{{"Nothing that is known.", "nothing to reset"}},
		marks:   func(p Place) []string { return []string{p.in("CONTINUE_GLOBAL_DIR", ".continue")} },
		files: func(p Place, s Setup) []File {
			return s.withKeyFile(p, "continue", false,
				File{Path: p.in("CONTINUE_GLOBAL_DIR", ".continue", ".env"), Kind: Dotenv, Entries: []Entry{set(s.Key, "PALIMPSEST_KEY")}, Secret: true},
				File{Path: p.in("CONTINUE_GLOBAL_DIR", ".continue", "config.yaml"), Kind: YAML, Entries: continueEntries(p, s), start: continueStart},
			)
		},
		launch: func(s Setup) Launch {
			text, err := put(YAML.format(), []byte(continueStart), continueEntries(Place{}, s))
			if err != nil {
				panic("connect: " + err.Error()) // a fixed value always encodes
			}
			return Launch{Arguments: []string{"--config", "{folder}/config.yaml"}, Files: map[string]string{"config.yaml": string(text)}}
		},
	}
}

type qwenModel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	URL  string `json:"baseUrl"`
	Key  string `json:"envKey"`
}

func qwenEntries(s Setup) []Entry {
	claude, gpt := models()
	return []Entry{
		set(qwenModel{claude.id, claude.title, s.Server, "PALIMPSEST_KEY"}, "modelProviders", "anthropic", "name="+claude.title),
		set(qwenModel{gpt.id, gpt.title, s.Server + "/v1", "PALIMPSEST_KEY"}, "modelProviders", "openai", "name="+gpt.title),
		set("anthropic", "security", "auth", "selectedType"),
		set(claude.id, "model", "name"),
	}
}

func qwenCode() Client {
	return Client{
		ID: "qwen-code", Title: "Qwen Code", Names: []string{"qwen"}, Runs: []string{"qwen"},
		Changed: []Difference{{"It lists only the models that stand in its settings.", "add models there; `connect` adds two"}},
		marks:   func(p Place) []string { return []string{p.home(".qwen")} },
		files: func(p Place, s Setup) []File {
			return s.withKeyFile(p, "qwen-code", false,
				File{Path: p.home(".qwen", ".env"), Kind: Dotenv, Entries: []Entry{set(s.Key, "PALIMPSEST_KEY")}, Secret: true},
				File{
					Path: p.home(".qwen", "settings.json"), Kind: JSON, Above: []string{p.project(".qwen", "settings.json")},
					Entries: append(qwenEntries(s), set(s.stdioServer("", "qwen-code", p), "mcpServers", "palimpsest")),
				},
			)
		},
		inProject: func(p Place, s Setup) []File {
			return []File{{Path: p.project(".qwen", "settings.json"), Kind: JSON, Entries: qwenEntries(s)}}
		},
		launch: func(s Setup) Launch {
			claude, _ := models()
			return Launch{
				Arguments:   []string{"--auth-type", "anthropic"},
				Environment: []string{"ANTHROPIC_BASE_URL=" + s.Server, "ANTHROPIC_API_KEY=" + s.Key, "ANTHROPIC_MODEL=" + claude.id},
			}
		},
		shell: []string{"ANTHROPIC_BASE_URL"},
	}
}

type droidModel struct {
	Model    string `json:"model"`
	Title    string `json:"displayName"`
	Provider string `json:"provider"`
	URL      string `json:"baseUrl"`
	Key      string `json:"apiKey"`
}

func droid() Client {
	return Client{
		ID: "droid", Title: "Droid", Names: []string{"factory"}, Runs: []string{"droid"},
		Changed: []Difference{{"It lists the models of `customModels` beside its own, which do not go through the proxy.", "choose one with `/model`"}},
		marks:   func(p Place) []string { return []string{p.home(".factory")} },
		files: func(p Place, s Setup) []File {
			claude, gpt := models()
			return s.withKeyFile(p, "droid", false,
				File{Path: p.home(".factory", "settings.json"), Kind: JSON, Secret: true, Entries: []Entry{
					set(droidModel{claude.id, claude.title, "anthropic", s.Server, s.Key}, "customModels", "displayName="+claude.title),
					set(droidModel{gpt.id, gpt.title, "openai", s.Server + "/v1", s.Key}, "customModels", "displayName="+gpt.title),
				}},
				File{Path: p.home(".factory", "mcp.json"), Kind: JSON, Entries: []Entry{set(s.stdioServer("stdio", "droid", p), "mcpServers", "palimpsest")}},
			)
		},
		steps: func(Place, Setup) []string { return []string{"Choose the model in Droid with /model."} },
	}
}

type crushProvider struct {
	Name   string       `json:"name"`
	Type   string       `json:"type"`
	URL    string       `json:"base_url"`
	Key    string       `json:"api_key"`
	Models []crushModel `json:"models"`
}

type crushModel struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Window    int    `json:"context_window"`
	MaxOutput int    `json:"default_max_tokens"`
}

func crush() Client {
	providers := func(p Place, s Setup) []Entry {
		key := "$(" + ShellLine(s.showKey("crush", p)) + ")"
		if s.InProject {
			key = "$PALIMPSEST_KEY"
		}
		claude, gpt := models()
		return []Entry{
			set(crushProvider{"Palimpsest, Anthropic", "anthropic", s.Server, key, []crushModel{{claude.id, claude.title, claude.window, claude.maxOutput}}}, "providers", "palimpsest-anthropic"),
			set(crushProvider{"Palimpsest, OpenAI", "openai", s.Server + "/v1", key, []crushModel{{gpt.id, gpt.title, gpt.window, gpt.maxOutput}}}, "providers", "palimpsest-openai"),
		}
	}
	return Client{
		ID: "crush", Title: "Crush", Runs: []string{"crush"},
		Changed: []Difference{{"A provider of one's own lists only the models that stand in `crush.json`.", "add models there; `connect` adds two"}},
		marks:   func(p Place) []string { return []string{p.crush()} },
		files: func(p Place, s Setup) []File {
			return s.withKeyFile(p, "crush", false, File{
				Path: p.crush("crush.json"), Kind: JSON, Above: []string{p.project("crush.json"), p.project(".crush.json")},
				Entries: append(providers(p, s), set(s.stdioServer("stdio", "crush", p), "mcp", "palimpsest")),
			})
		},
		inProject: func(p Place, s Setup) []File {
			return []File{{Path: p.project("crush.json"), Kind: JSON, Entries: providers(p, s)}}
		},
		steps: func(Place, Setup) []string { return []string{"Choose the model in Crush with Ctrl+P."} },
	}
}

// crush returns a path in the folder of Crush's settings.
func (p Place) crush(path ...string) string {
	if p.OS == "windows" {
		return p.in("LOCALAPPDATA", "AppData/Local", append([]string{"crush"}, path...)...)
	}
	return p.config(append([]string{"crush"}, path...)...)
}
