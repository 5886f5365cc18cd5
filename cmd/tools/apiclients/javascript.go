package apiclients

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

// The smallest agents on top of the SDKs.
var (
	//go:embed npm/agent.mjs
	agentScript string

	//go:embed npm/aisdk.mjs
	aiSDKScript string

	//go:embed npm/langchain.mjs
	langChainScript string
)

// javaScript is one of the providers' JavaScript SDKs in one of the formats.
func javaScript(format string) Client {
	name, section := "openai", "OpenAI SDK"
	if format == "messages" {
		name, section = "@anthropic-ai/sdk", "Anthropic SDK"
	}
	client := node(section, "client", agentScript, format)
	client.Name, client.Package = name+", "+format, name

	return client
}

// aiSDK is the AI SDK in one of the formats.
func aiSDK(format string) Client {
	client := node("AI SDK", "anthropic, openai", aiSDKScript, format)
	client.Name, client.Package = "AI SDK, "+format, "ai"

	return client
}

// langChain is LangChain in one of the formats.
func langChain(format string) Client {
	chain := node("LangChain", "claude, gpt", langChainScript, format)
	chain.Name, chain.Package, chain.known = "LangChain, "+format, "@langchain/openai", client.LangChain
	if format == "messages" {
		chain.Package, chain.known = "@langchain/anthropic", client.AnthropicSDK // it sends that SDK's user agent
	}

	return chain
}

// node is a JavaScript agent on top of an SDK that a section of the docs sets up; exports are the names
// that the section's snippet defines.
func node(section, exports, script, format string) Client {
	return Client{
		skips:   stateless(),
		prepare: func(*session) error { return nil },
		say: func(s *session, text string, _ bool) (command, error) {
			lines, err := s.snippet(section, "js")
			if err != nil {
				return command{}, err
			}
			// Inside the installation, so that node finds the SDK.
			folder, err := os.MkdirTemp(s.install, "agent-")
			if err != nil {
				return command{}, fmt.Errorf("folder of the agent: %w", err)
			}
			if err := writeBelow(folder, "client.mjs", lines+"\n\nexport { "+exports+" };\n"); err != nil {
				return command{}, err
			}
			if err := writeBelow(folder, "agent.mjs", script); err != nil {
				return command{}, err
			}
			return command{program: "node", arguments: []string{filepath.Join(folder, "agent.mjs"), format, text}}, nil
		},
		shell: func(line string) providerdouble.Call { return call("bash", bashInput{Command: line}) },
	}
}

// stateless explains why cases do not apply to clients without a conversation.
func stateless() map[string]string {
	const why = "an SDK keeps no conversation"

	return map[string]string{"compaction asked for": why, "own compaction": why, "subagent": why}
}
