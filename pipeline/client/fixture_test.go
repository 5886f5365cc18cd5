package client_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// codecs are the three formats.
func codecs() []wire.Codec {
	return []wire.Codec{anthropic.Codec{}, openaichat.Codec{}, openairesponses.Codec{}}
}

// codecAt returns the format of a path.
func codecAt(path string) wire.Codec {
	switch path {
	case "/v1/chat/completions":
		return openaichat.Codec{}
	case "/v1/responses", "/v1/responses/compact":
		return openairesponses.Codec{}
	}
	return anthropic.Codec{}
}

// said is one message of a fixture: a role ("result" for a tool's), and its texts,
// each a block of its own.
type said struct {
	role  string
	texts []string
}

func user(texts ...string) said      { return said{"user", texts} }
func assistant(texts ...string) said { return said{"assistant", texts} }
func result(texts ...string) said    { return said{"result", texts} }

// object is a JSON object.
type object map[string]any

// body writes a request in a format as its SDKs do.
func body(t *testing.T, codec wire.Codec, system string, messages ...said) []byte {
	t.Helper()
	var list []any
	whole := object{"model": "m", "stream": true}
	for _, message := range messages {
		list = append(list, element(codec.Format(), message)...)
	}
	if system != "" {
		switch codec.Format() {
		case conversation.Anthropic:
			whole["system"] = []any{object{"type": "text", "text": system}}
		case conversation.OpenAIChat:
			list = append([]any{object{"role": "system", "content": system}}, list...)
		case conversation.OpenAIResponses:
			whole["instructions"] = system
		}
	}
	whole[codec.List()] = list
	raw, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// element writes one message in a format.
func element(format conversation.Format, message said) []any {
	joined := message.texts[0]
	switch {
	case message.role == "result" && format == conversation.Anthropic:
		return []any{object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "t1", "content": joined}}}}
	case message.role == "result" && format == conversation.OpenAIChat:
		return []any{object{"role": "tool", "tool_call_id": "t1", "content": joined}}
	case message.role == "result":
		return []any{object{"type": "function_call_output", "call_id": "t1", "output": joined}}
	case format == conversation.OpenAIResponses:
		kind := "input_text"
		if message.role == "assistant" {
			kind = "output_text"
		}
		return []any{object{"type": "message", "role": message.role, "content": parts(kind, message.texts)}}
	case len(message.texts) == 1:
		return []any{object{"role": message.role, "content": joined}}
	}
	return []any{object{"role": message.role, "content": parts("text", message.texts)}}
}

func parts(kind string, texts []string) []any {
	blocks := make([]any, len(texts))
	for i, text := range texts {
		blocks[i] = object{"type": kind, "text": text}
	}
	return blocks
}

// open cuts a body.
func open(t testing.TB, codec wire.Codec, body []byte) *wire.Envelope {
	t.Helper()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

// header makes headers of names and their values by turns.
func header(pairs ...string) http.Header {
	made := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		made.Set(pairs[i], pairs[i+1])
	}
	return made
}

// classify classifies a request without headers.
func classify(t *testing.T, codec wire.Codec, system string, messages ...said) client.Class {
	t.Helper()
	return client.Classify(http.Header{}, "", open(t, codec, body(t, codec, system, messages...)))
}

// tools is a tool turn: what a person asked, the model's call and the result.
func tools(words string) []said {
	return []said{user("read a.txt"), assistant("I will read it."), result(words)}
}

const (
	continuedText = "This session is being continued from a previous conversation that ran out of context. " +
		"The summary below covers the earlier portion of the conversation.\n\n" +
		"<system-reminder>\n<tools-used-before-summary>Read</tools-used-before-summary>\n</system-reminder>\n" +
		"Summary:\n1. Primary Request: fix the parser.\n\n" +
		"If you need specific details from before compaction (like exact code snippets), read the full transcript at: /home/dev/s.jsonl\n" +
		"Continue the conversation from where it left off without asking the user any further questions."
	continuedOld = "This session is being continued from a previous conversation that ran out of context. " +
		"The conversation is summarized below:\nAnalysis:\nThe parser.\nPlease continue the conversation from where we left it off."
	claudeAsks = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far.\n\n" +
		"REMINDER: Do NOT call any tools. Respond with plain text only — an <analysis> block followed by a <summary> block. Tool calls will be rejected and you will fail the task."
	claudeAskedOnce = "Your task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests and your previous actions.\n" +
		"Wrap your analysis in <analysis> tags."
	codexAsks    = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM that will resume the task.\n\nInclude:\n- progress"
	handover     = "Another language model started to solve this problem and produced a summary of its thinking process. You also have access to the state of the tools. Here is the summary produced by the other language model, use the information in this summary to assist with your own analysis:\nThe parser is fixed."
	piSummary    = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n## Goal\nFix the parser\n\n<read-files>\na.txt\n</read-files>\n</summary>"
	piBranch     = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\nThe lexer was tried.\n</summary>"
	piSystem     = "You are an expert coding assistant operating inside pi, a coding agent harness. You help users."
	piAsks       = "You are a context summarization assistant. Your task is to read a conversation."
	codeAsks     = "You are a context summarization agent. You are given a conversation."
	codeTitle    = "You are a title generator. You output ONLY a thread title. Nothing else."
	codeGoOn     = "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed."
	claudeSystem = "You are Claude Code, Anthropic's official CLI for Claude."
	clineSystem  = "You are Cline, an AI coding agent. Your primary goal is to assist users."
	clineNotice  = "<SYSTEM_NOTICE>\nEarlier context was compacted. Summary of your actions after the request above:\nFiles read:\na.txt</SYSTEM_NOTICE>"
	clineNote    = "[NOTE] Some previous conversation history with the user has been removed to maintain optimal context window length. The initial user task has been retained."
	clineAsks    = "Summarize the provided coding session into a concise continuation note with detailed next steps."
	rooSystem    = "You are Roo, a highly skilled software engineer."
	rooAsks      = "You are a helpful AI assistant tasked with summarizing conversations.\n\nCRITICAL: This is a summarization-only request."
	copilotOver  = "Some of the conversation history has been summarized to free up context.\n\n" +
		"You were originally given instructions from a user over one or more turns. Here were the user messages:\n<user_message>\nfix it\n</user_message>\n\n" +
		"Here is a summary of the prior context:\n<summary>\n<overview>\nThe parser.\n</overview>\n</summary>"
	copilotAsks = "Please create a detailed summary of the conversation so far. The history is being compacted so moving forward, all conversation history will be removed.\n\n" +
		"7. <checkpoint_title> - 2-6 word description of the main work done"
	copilotSystem = "You are the GitHub Copilot CLI, a terminal assistant built by GitHub."
	qwenAsks      = "You are the component that summarizes a conversation when its context window is about to overflow. The summary you produce will become the agent's ONLY memory.\n\n" +
		"<state_snapshot>\n</state_snapshot>\n\nDo not call tools; tool execution is disabled for this request."
	qwenOver    = "<state_snapshot>\nThe parser.\n</state_snapshot>\n\nResume the prior task using the summary above."
	qwenMemory  = "You are now acting as the managed memory extraction subagent for an AI coding assistant.\n\nRules:"
	qwenSystem  = "You are Qwen Code, an interactive CLI agent developed by Alibaba Group, specializing in software engineering tasks."
	suggestion  = "[SUGGESTION MODE: Suggest what the user might naturally type next into Claude Code.]\n\nFormat: 2-12 words.\n\nReply with ONLY the suggestion, no quotes or explanation."
	recap       = "The user stepped away and is coming back. Recap in under 40 words, 1-2 plain sentences, no markdown."
	kebabName   = "Generate a short kebab-case name (2-4 words) that captures the main topic of this conversation. Use lowercase words."
	doingNow    = "Describe your most recent action in 3-5 words using present tense (-ing). Name the file or function, not the branch. Do not use tools.\n"
	byTheWay    = "<system-reminder>This is a side question from the user. You must answer this question directly in a single response.\n</system-reminder>\n\n"
	memories    = "You are now acting as the memory extraction subagent. Analyze the most recent ~6 messages above and use them to update your persistent memory systems."
	crushGoesOn = "The previous session was interrupted because it got too long, the initial user request was: `fix it`"

	droidSystem = "You are Droid, an AI software engineering agent built by Factory."
	droidAsks   = droidSystem + " You excel at creating and maintaining summaries that capture the most salient details from technical conversations."
	droidOver   = "A previous instance of Droid has summarized the conversation thus far as follows:\n\n<summary>\nThe parser.\n</summary>\n\n" +
		"IMPORTANT: This summary was created by a previous instance of Droid."

	continueSystem = "You are an agent in the Continue CLI. Given the user's prompt, you should use the tools available to you to answer the user's question."
	continueAsks   = "Please provide a concise summary of our conversation so far, capturing the key context, decisions made, and current state. Format this as a single comprehensive message that preserves all important information needed to continue our work. You do not need to recap the system message, as this will remain. Make sure it is clear what the current stream of work was at the very end prior to compaction so that you can continue exactly where you left off without missing any information."
)
