// A small agent: node agent.mjs FORMAT TEXT says TEXT to the model, runs the
// shell commands that it asks for, and prints its last answer.
import { execFileSync } from "node:child_process";
import { client } from "./client.mjs";

const [format, text] = process.argv.slice(2);
const parameters = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const description = "Runs a command in a shell and returns what it prints.";

function shell(input) {
  return execFileSync("/bin/sh", ["-c", input.command], { encoding: "utf8" });
}

async function messages() {
  const history = [{ role: "user", content: text }];
  for (;;) {
    const answer = await client.messages
      .stream({
        model: "claude-sonnet-5",
        max_tokens: 2000,
        messages: history,
        tools: [{ name: "bash", description, input_schema: parameters }],
      })
      .finalMessage();
    const calls = answer.content.filter((block) => block.type === "tool_use");
    if (calls.length === 0) {
      return answer.content.map((block) => block.text ?? "").join("");
    }
    history.push({ role: "assistant", content: answer.content });
    history.push({
      role: "user",
      content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: shell(call.input) })),
    });
  }
}

async function chat() {
  const history = [{ role: "user", content: text }];
  for (;;) {
    const answer = await client.chat.completions
      .stream({
        model: "gpt-5.1",
        messages: history,
        tools: [{ type: "function", function: { name: "bash", description, parameters } }],
      })
      .finalMessage();
    if (!answer.tool_calls?.length) {
      return answer.content;
    }
    const { parsed, ...message } = answer; // the SDK's own, which the API does not take
    history.push(message);
    for (const call of answer.tool_calls) {
      history.push({ role: "tool", tool_call_id: call.id, content: shell(JSON.parse(call.function.arguments)) });
    }
  }
}

async function responses() {
  const history = [{ role: "user", content: text }];
  for (;;) {
    const answer = await client.responses
      .stream({
        model: "gpt-5.1",
        store: false,
        include: ["reasoning.encrypted_content"],
        input: history,
        tools: [{ type: "function", name: "bash", description, parameters, strict: false }],
      })
      .finalResponse();
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) {
      return answer.output_text;
    }
    for (const { parsed_arguments, parsed, ...item } of answer.output) {
      history.push(item);
    }
    for (const call of calls) {
      history.push({ type: "function_call_output", call_id: call.call_id, output: shell(JSON.parse(call.arguments)) });
    }
  }
}

console.log(await { messages, chat, responses }[format]());
