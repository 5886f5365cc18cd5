import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";

// Message threads: the SDK sends only what is new, until it is asked for the whole.
const { PALIMPSEST_URL: url, PALIMPSEST_KEY: key } = process.env;
const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const model = { model: "claude-sonnet-5", max_tokens: 1000 };
const textOf = (answer) => answer.content.map((block) => block.text ?? "").join("");

// A thread that the program keeps.
const thread = client.beta.messages.thread(model);
for (const text of ["the first of three", "the second of three", "the third of three"]) {
  assert.match(textOf(await thread.send({ role: "user", content: text })), new RegExp(text));
}
assert.equal(thread.messages.length, 6);

// The SDK's own loop over tools uses one by itself.
const read = [];
const tool = betaTool({
  name: "Read",
  description: "Reads a file.",
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  run: ({ path }) => read.push(path) && `the content of ${path}`,
});
const runner = client.beta.messages.toolRunner({ ...model, tools: [tool], messages: [{ role: "user", content: 'call tool Read {"path":"a.txt"}' }] });
assert.match(textOf(await runner), /the content of a\.txt/);
assert.deepEqual(read, ["a.txt"]);

console.log("ok");
