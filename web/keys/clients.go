package keys

import "strings"

// client is how a client is set up.
type client struct {
	ID      string // part of ids on the page
	Title   string
	Snippet string
	Hint    string
}

// clients returns how to set up each client for the proxy at publicURL. The key
// is in the environment variable PALIMPSEST_KEY throughout.
func clients(publicURL string) []client {
	fill := func(snippet string) string { return strings.ReplaceAll(strings.TrimSpace(snippet), "{url}", publicURL) }
	return []client{
		{"claude-code", "Claude Code", fill(`
unset ANTHROPIC_API_KEY
export ANTHROPIC_BASE_URL="{url}"
export ANTHROPIC_AUTH_TOKEN="$PALIMPSEST_KEY"
claude`), "No /v1 at the end. To keep this, put both under env in ~/.claude/settings.json, never in a project’s settings file. Check with /status."},
		{"codex", "Codex", fill(`
# ~/.codex/config.toml
model_provider = "palimpsest"

[model_providers.palimpsest]
name = "Palimpsest"
base_url = "{url}/v1"
env_key = "PALIMPSEST_KEY"
wire_api = "responses"`), "In your own config: a project’s config.toml cannot set model_provider. Codex reads the key from the environment variable PALIMPSEST_KEY."},
		{"anthropic-python", "Anthropic Python", fill(`
import os
from anthropic import Anthropic

client = Anthropic(
    base_url="{url}",
    auth_token=os.environ["PALIMPSEST_KEY"],
)`), "No /v1: the SDK adds it."},
		{"anthropic-ts", "Anthropic TypeScript", fill(`
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({
  baseURL: "{url}",
  authToken: process.env.PALIMPSEST_KEY,
});`), "No /v1: the SDK adds it."},
		{"anthropic-go", "Anthropic Go", fill(`
import (
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

client := anthropic.NewClient(
	option.WithBaseURL("{url}"),
	option.WithAuthToken(os.Getenv("PALIMPSEST_KEY")),
)`), "No /v1: the SDK adds it."},
		{"openai", "OpenAI SDK", fill(`
import os
from openai import OpenAI

client = OpenAI(
    base_url="{url}/v1",
    api_key=os.environ["PALIMPSEST_KEY"],
)`), "Chat completions and responses both work. Name a conversation with the header X-Palimpsest-Session-Id, or let the proxy recognise it by its first messages."},
		{"curl", "curl", fill(`
curl {url}/v1/messages \
  -H "authorization: Bearer $PALIMPSEST_KEY" \
  -H "anthropic-version: 2023-06-01" \
  -H "content-type: application/json" \
  -d '{"model": "claude-sonnet-4-5", "max_tokens": 256,
       "messages": [{"role": "user", "content": "ping"}]}'`), "The response header X-Palimpsest-Tokens-Saved says what was saved."},
	}
}
