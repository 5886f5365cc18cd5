package clients

// Snippets to copy for each client; {url} is the address of the proxy, {claude} and {gpt} are models.
const (
	claudeCode = `
unset ANTHROPIC_API_KEY
export ANTHROPIC_BASE_URL="{url}"
export ANTHROPIC_AUTH_TOKEN="$PALIMPSEST_KEY"
export CLAUDE_CODE_GATEWAY_HINT_HEADERS=1
export CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY=1
export CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING=1
export ENABLE_TOOL_SEARCH=true
claude`

	copilot = `
export COPILOT_PROVIDER_BASE_URL="{url}"
export COPILOT_PROVIDER_TYPE="anthropic"
export COPILOT_PROVIDER_API_KEY="$PALIMPSEST_KEY"
export COPILOT_MODEL="{claude}"
copilot`

	qwenCode = `
export OPENAI_BASE_URL="{url}/v1"
export OPENAI_API_KEY="$PALIMPSEST_KEY"
export OPENAI_MODEL="{gpt}"
qwen --auth-type openai`

	geminiCLI = `
export GOOGLE_GEMINI_BASE_URL="{url}"
export GEMINI_API_KEY="$PALIMPSEST_KEY"
gemini`

	geminiSettings = `
{
  "security": { "auth": { "selectedType": "gemini-api-key" } },
  "mcpServers": {
    "palimpsest": { "httpUrl": "{url}/mcp", "headers": { "Authorization": "Bearer ${PALIMPSEST_KEY}" } }
  }
}`

	codex = `
# ~/.codex/config.toml
model_provider = "palimpsest"

[model_providers.palimpsest]
name = "Palimpsest"
base_url = "{url}/v1"
env_key = "PALIMPSEST_KEY"
wire_api = "responses"`

	pi = `
{
  "providers": {
    "palimpsest-anthropic": {
      "baseUrl": "{url}",
      "api": "anthropic-messages",
      "apiKey": "!printenv PALIMPSEST_KEY",
      "models": [{ "id": "{claude}", "reasoning": true, "contextWindow": 1000000, "maxTokens": 128000 }]
    },
    "palimpsest-openai": {
      "baseUrl": "{url}/v1",
      "api": "openai-responses",
      "apiKey": "!printenv PALIMPSEST_KEY",
      "models": [{ "id": "{gpt}", "reasoning": true, "contextWindow": 922000, "maxTokens": 128000 }]
    },
    "palimpsest-chat": {
      "baseUrl": "{url}/v1",
      "api": "openai-completions",
      "apiKey": "!printenv PALIMPSEST_KEY",
      "models": [{ "id": "{gpt}", "contextWindow": 922000, "maxTokens": 128000 }]
    }
  }
}`

	openCode = `
{
  "$schema": "https://opencode.ai/config.json",
  "provider": {
    "anthropic": {
      "options": { "baseURL": "{url}/v1", "apiKey": "{env:PALIMPSEST_KEY}" }
    },
    "openai": {
      "options": { "baseURL": "{url}/v1", "apiKey": "{env:PALIMPSEST_KEY}" }
    },
    "palimpsest": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "Palimpsest",
      "options": { "baseURL": "{url}/v1", "apiKey": "{env:PALIMPSEST_KEY}" },
      "models": { "{gpt}": { "name": "GPT", "limit": { "context": 922000, "output": 128000 } } }
    }
  }
}`

	recallClaudeCode = `
claude mcp add --transport http --scope user palimpsest "{url}/mcp" --header "Authorization: Bearer $PALIMPSEST_KEY"`

	recallCodex = `
# ~/.codex/config.toml
[mcp_servers.palimpsest]
url = "{url}/mcp"
bearer_token_env_var = "PALIMPSEST_KEY"`

	recallOpenCode = `
{
  "mcp": {
    "palimpsest": { "type": "remote", "url": "{url}/mcp", "headers": { "Authorization": "Bearer {env:PALIMPSEST_KEY}" } }
  }
}`

	recallPi = `
{
  "mcpServers": {
    "palimpsest": { "url": "{url}/mcp", "headers": { "Authorization": "Bearer ${PALIMPSEST_KEY}" }, "exposure": "direct" }
  }
}`

	aiSDK = `
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";

const anthropic = createAnthropic({
  baseURL: "{url}/v1",
  apiKey: process.env.PALIMPSEST_KEY,
});
const openai = createOpenAI({
  baseURL: "{url}/v1",
  apiKey: process.env.PALIMPSEST_KEY,
});`

	anthropicJS = `
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({
  baseURL: "{url}",
  authToken: process.env.PALIMPSEST_KEY,
});`

	anthropicPython = `
import os
from anthropic import Anthropic

client = Anthropic(
    base_url="{url}",
    auth_token=os.environ["PALIMPSEST_KEY"],
)`

	anthropicGo = `
import (
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

client := anthropic.NewClient(
	option.WithBaseURL("{url}"),
	option.WithAuthToken(os.Getenv("PALIMPSEST_KEY")),
)`

	openAIJS = `
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "{url}/v1",
  apiKey: process.env.PALIMPSEST_KEY,
});`

	openAIPython = `
import os
from openai import OpenAI

client = OpenAI(
    base_url="{url}/v1",
    api_key=os.environ["PALIMPSEST_KEY"],
)`

	openAIGo = `
import (
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

client := openai.NewClient(
	option.WithBaseURL("{url}/v1"),
	option.WithAPIKey(os.Getenv("PALIMPSEST_KEY")),
)`

	curl = `
curl {url}/v1/messages \
  -H "authorization: Bearer $PALIMPSEST_KEY" \
  -H "anthropic-version: 2023-06-01" \
  -H "content-type: application/json" \
  -d '{"model": "{claude}", "max_tokens": 256,
       "messages": [{"role": "user", "content": "ping"}]}'`
)
