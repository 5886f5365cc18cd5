package connect

// geminiCLI is Google's Gemini CLI. It needs a workspace with a provider key of Google Gemini. It
// can't be set up for one run: with its address in the environment alone, version 0.61 refuses to start without a
// person, and it only takes its kind of sign-in from its own files.
func geminiCLI() Client {
	return Client{
		ID: "gemini-cli", Title: "Gemini CLI", Names: []string{"gemini"}, Runs: []string{"gemini"},
		Changed: []Difference{{"It uses an API key in place of a sign-in with Google.", "run `/auth` in Gemini CLI"}},
		marks:   func(p Place) []string { return []string{p.home(".gemini")} },
		files: func(p Place, s Setup) []File {
			return s.withKeyFile(p, "gemini-cli", false,
				File{Path: p.home(".gemini", ".env"), Kind: Dotenv, Secret: true, Entries: []Entry{
					set(s.Key, "GEMINI_API_KEY"), set(s.Server, "GOOGLE_GEMINI_BASE_URL"),
				}, Above: []string{p.project(".gemini", ".env"), p.project(".env")}},
				File{
					Path: p.home(".gemini", "settings.json"), Kind: JSON, Above: []string{p.project(".gemini", "settings.json")},
					Entries: []Entry{
						set("gemini-api-key", "security", "auth", "selectedType"),
						set(s.stdioServer("", "gemini-cli", p), "mcpServers", "palimpsest"),
					},
				},
			)
		},
		shell: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"},
	}
}
