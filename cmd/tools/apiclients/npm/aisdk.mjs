// A small agent: node agent.mjs FORMAT TEXT says TEXT to the model, runs the
// shell commands that it asks for, and prints its last answer.
import { execFileSync } from "node:child_process";
import { isStepCount, jsonSchema, streamText, tool } from "ai";
import { anthropic, openai } from "./client.mjs";

const [format, text] = process.argv.slice(2);
const models = {
  messages: () => anthropic("claude-sonnet-5"),
  chat: () => openai.chat("gpt-5.1"),
  responses: () => openai("gpt-5.1"),
};
const bash = tool({
  description: "Runs a command in a shell and returns what it prints.",
  inputSchema: jsonSchema({ type: "object", properties: { command: { type: "string" } }, required: ["command"] }),
  execute: ({ command }) => execFileSync("/bin/sh", ["-c", command], { encoding: "utf8" }),
});

let failure;
const answer = streamText({
  model: models[format](),
  prompt: text,
  tools: { bash },
  stopWhen: isStepCount(50),
  // With reasoning, and as the SDK has it: OpenAI stores what the model thinks and says, and the SDK refers to it.
  providerOptions: { openai: { reasoningEffort: "medium" } },
  onError: ({ error }) => {
    failure = error;
  },
});
await answer.consumeStream();
if (failure) {
  throw failure;
}
console.log(await answer.text);
