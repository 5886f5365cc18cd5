package apiclients

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

// answerCase is the case that clients without tools can be tried in too.
const answerCase = "an answer"

// only skips all cases except that of a plain answer.
func only(why string) map[string]string {
	skips := map[string]string{}
	for _, one := range Cases() {
		skips[one.Name] = why
	}
	maps.DeleteFunc(skips, func(name, _ string) bool { return name == answerCase })

	return skips
}

// curl is the docs' curl command.
func curl() Client {
	return Client{
		Name:    "curl",
		skips:   only("one request"),
		prepare: func(*session) error { return nil },
		say: func(s *session, text string, _ bool) (command, error) {
			lines, err := s.snippet("curl", "sh")
			if err != nil {
				return command{}, err
			}
			return command{program: "/bin/sh", arguments: []string{"-c", strings.ReplaceAll(lines, "ping", text)}}, nil
		},
		shell: func(string) providerdouble.Call { return providerdouble.Call{} },
	}
}

// The rest of a Go program around a snippet of the docs, after the imports and after the client.
const (
	anthropicGo = `
	answer, err := client.Messages.New(context.Background(), anthropic.MessageNewParams{
		Model: "claude-sonnet-5", MaxTokens: 200,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(os.Args[1]))},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Content[0].Text)
}
`
	openaiGo = `
	answer, err := client.Responses.New(context.Background(), responses.ResponseNewParams{
		Model: "gpt-5.1", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(os.Args[1])},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.OutputText())
}
`
)

// goSDK is a provider's SDK for Go, at the version of go.mod. It runs in the folder of the module.
func goSDK(section, imports, rest string) Client {
	return Client{
		Name:    section + ", Go",
		skips:   only("its tools, streams and errors are tried by make test"),
		prepare: func(*session) error { return nil },
		say: func(s *session, text string, _ bool) (command, error) {
			lines, err := s.snippet(section, "go")
			if err != nil {
				return command{}, err
			}
			head, client, found := strings.Cut(lines, "\n)\n")
			if !found {
				return command{}, fmt.Errorf("the Go snippet for %s in docs/clients.md has no imports", section)
			}
			program := "package main\n\n" + head + "\n" + imports + ")\n\nfunc main() {" + client + rest
			file := filepath.Join(s.temporary, "main.go")
			if err := writeBelow(s.temporary, "main.go", program); err != nil {
				return command{}, err
			}
			module, err := os.Getwd()
			if err != nil {
				return command{}, fmt.Errorf("folder of the module: %w", err)
			}
			lookup, err := goPlaces()
			if err != nil {
				return command{}, err
			}
			return command{program: "/bin/sh", arguments: []string{"-c", `cd "$1" && exec go run "$2" "$3"`, "go", module, file, text}, environment: lookup}, nil
		},
		shell: func(string) providerdouble.Call { return providerdouble.Call{} },
	}
}

// goPlaces returns the folders of this user's Go downloads and builds, because the client's own home starts
// without them.
func goPlaces() ([]string, error) {
	names := []string{"GOPATH", "GOMODCACHE", "GOCACHE"}
	said, err := exec.CommandContext(context.Background(), "go", append([]string{"env"}, names...)...).Output() //nolint:gosec // three fixed names
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	values := strings.Split(strings.TrimSpace(string(said)), "\n")
	if len(values) != len(names) {
		return nil, fmt.Errorf("go env: %d lines, want %d", len(values), len(names))
	}
	for i := range names {
		values[i] = names[i] + "=" + values[i]
	}

	return append(values, "GOPROXY=off"), nil
}

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
