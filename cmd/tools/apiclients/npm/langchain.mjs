// A small agent: node agent.mjs FORMAT TEXT says TEXT to the model, runs the
// shell commands that it asks for, and prints its last answer.
import { execFileSync } from "node:child_process";
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { claude, gpt } from "./client.mjs";

const [format, text] = process.argv.slice(2);
const bash = tool(({ command }) => execFileSync("/bin/sh", ["-c", command], { encoding: "utf8" }), {
  name: "bash",
  description: "Runs a command in a shell and returns what it prints.",
  schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
});
// LangChain itself takes Responses for newer models, and Chat Completions for older ones.
const models = { messages: claude, chat: gpt.completions, responses: gpt.responses };
const model = models[format].bindTools([bash]);

const history = [new HumanMessage(text)];
for (;;) {
  let answer;
  for await (const chunk of await model.stream(history)) {
    answer = answer ? answer.concat(chunk) : chunk;
  }
  if (!answer.tool_calls?.length) {
    console.log(answer.text);
    break;
  }
  history.push(answer);
  for (const call of answer.tool_calls) {
    history.push(await bash.invoke(call));
  }
}
