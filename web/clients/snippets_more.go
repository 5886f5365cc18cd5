package clients

// Snippets for clients that share their set-up with another one, and for the recall tools in further clients.
const (
	agentSDKJS = `
import { query } from "@anthropic-ai/claude-agent-sdk";

const env = {
  ...process.env,
  ANTHROPIC_API_KEY: "",
  ANTHROPIC_BASE_URL: "{url}",
  ANTHROPIC_AUTH_TOKEN: process.env.PALIMPSEST_KEY,
  CLAUDE_CODE_GATEWAY_HINT_HEADERS: "1",
  CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING: "1",
  ENABLE_TOOL_SEARCH: "true",
};
for await (const message of query({ prompt: "ping", options: { env } })) {
  console.log(message);
}`

	agentSDKPython = `
import os
from claude_agent_sdk import ClaudeAgentOptions

options = ClaudeAgentOptions(
    env={
        "ANTHROPIC_API_KEY": "",
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_AUTH_TOKEN": os.environ["PALIMPSEST_KEY"],
        "CLAUDE_CODE_GATEWAY_HINT_HEADERS": "1",
        "CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING": "1",
        "ENABLE_TOOL_SEARCH": "true",
    },
)`

	foundry = `
export CLAUDE_CODE_USE_FOUNDRY=1
export ANTHROPIC_FOUNDRY_BASE_URL="{url}/anthropic"
export ANTHROPIC_FOUNDRY_API_KEY="$PALIMPSEST_KEY"
export CLAUDE_CODE_GATEWAY_HINT_HEADERS=1
export CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING=1
export ENABLE_TOOL_SEARCH=true
claude`

	codexBuiltIn = `
printenv PALIMPSEST_KEY | codex login --with-api-key
codex -c 'openai_base_url="{url}/v1"'`

	droid = `
{
  "customModels": [
    {
      "model": "{claude}",
      "displayName": "Claude through Palimpsest",
      "provider": "anthropic",
      "baseUrl": "{url}",
      "apiKey": "${PALIMPSEST_KEY}"
    },
    {
      "model": "{gpt}",
      "displayName": "GPT through Palimpsest",
      "provider": "openai",
      "baseUrl": "{url}/v1",
      "apiKey": "${PALIMPSEST_KEY}"
    }
  ]
}`

	continueConfig = `
name: Palimpsest
version: 1.0.0
schema: v1
models:
  - name: Claude
    provider: anthropic
    model: {claude}
    apiBase: {url}/v1
    apiKey: ${{ secrets.PALIMPSEST_KEY }}
  - name: GPT
    provider: openai
    model: {gpt}
    apiBase: {url}/v1
    apiKey: ${{ secrets.PALIMPSEST_KEY }}`

	langChainJS = `
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";

const claude = new ChatAnthropic({
  model: "{claude}",
  anthropicApiUrl: "{url}",
  apiKey: process.env.PALIMPSEST_KEY,
});
const gpt = new ChatOpenAI({
  model: "{gpt}",
  apiKey: process.env.PALIMPSEST_KEY,
  configuration: { baseURL: "{url}/v1" },
});`

	langChainPython = `
import os
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

claude = ChatAnthropic(
    model="{claude}",
    base_url="{url}",
    api_key=os.environ["PALIMPSEST_KEY"],
)
gpt = ChatOpenAI(
    model="{gpt}",
    base_url="{url}/v1",
    api_key=os.environ["PALIMPSEST_KEY"],
)`

	recallCursor = `
{
  "mcpServers": {
    "palimpsest": { "url": "{url}/mcp", "headers": { "Authorization": "Bearer ${env:PALIMPSEST_KEY}" } }
  }
}`

	recallDroid = `
droid mcp add palimpsest "{url}/mcp" --type http --header "Authorization: Bearer $PALIMPSEST_KEY"`

	recallContinue = `
mcpServers:
  - name: palimpsest
    type: streamable-http
    url: {url}/mcp
    requestOptions:
      headers:
        Authorization: Bearer ${{ secrets.PALIMPSEST_KEY }}`

	recallQwen = `
qwen mcp add --transport http --scope user palimpsest "{url}/mcp" --header "Authorization: Bearer $PALIMPSEST_KEY"`
)
