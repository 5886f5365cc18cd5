import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const { PALIMPSEST_URL: url, PALIMPSEST_KEY: key } = process.env;
const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const tools = [{ name: "Read", input_schema: { type: "object", properties: { path: { type: "string" } } } }];
const ask = (text) => ({ model: "claude-sonnet-5", max_tokens: 1000, messages: [{ role: "user", content: text }], tools });
const textOf = (answer) => answer.content.map((block) => block.text ?? "").join("");

// Not streamed.
const whole = await client.messages.create(ask("good morning"));
assert.match(textOf(whole), /good morning/);
assert.equal(whole.stop_reason, "end_turn");
assert.ok(whole.usage.input_tokens > 0);

// Streamed: the events one by one, and what the SDK makes of them.
let pieces = "";
const kinds = new Set();
const stream = client.messages.stream(ask("good evening"));
for await (const event of stream) {
  kinds.add(event.type);
  pieces += event.delta?.text ?? "";
}
const last = await stream.finalMessage();
assert.match(pieces, /good evening/);
assert.equal(textOf(last), pieces);
for (const kind of ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"]) {
  assert.ok(kinds.has(kind), `no ${kind}`);
}

// A tool call and its result, streamed and not.
for (const send of [(body) => client.messages.create(body), (body) => client.messages.stream(body).finalMessage()]) {
  const body = ask('call tool Read {"path":"a.txt"}');
  const called = await send(body);
  const call = called.content.find((block) => block.type === "tool_use");
  assert.equal(called.stop_reason, "tool_use");
  assert.deepEqual([call.name, call.input], ["Read", { path: "a.txt" }]);
  body.messages.push({ role: "assistant", content: called.content });
  body.messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "the content of a.txt" }] });
  assert.match(textOf(await send(body)), /the content of a\.txt/);
}

// Counting and the list of models.
const count = await client.messages.countTokens({ model: "claude-sonnet-5", messages: [{ role: "user", content: "good morning" }] });
assert.ok(count.input_tokens > 0);
const models = await client.models.list();
assert.ok(models.data.some((model) => model.id.startsWith("claude-")));

// The provider's errors keep their class and words.
const failing = (how, more) => client.messages.create(ask("x"), { headers: { "x-double-misbehave": how }, ...more });
await assert.rejects(failing("429"), (error) => error instanceof Anthropic.RateLimitError && error.headers.get("retry-after") === "1");
await assert.rejects(failing("529"), (error) => error.status === 529 && /overloaded_error/.test(error.message));
await assert.rejects(failing("500"), Anthropic.InternalServerError);
await assert.rejects(client.messages.create({ ...ask("x"), max_tokens: -1 }), Anthropic.BadRequestError);
for (const how of ["cut", "midstream-error"]) {
  const broken = client.messages.stream(ask("good night"), { headers: { "x-double-misbehave": how } });
  await assert.rejects(broken.finalMessage(), Anthropic.AnthropicError, how);
}

// Ours is in the provider's shape.
const stranger = new Anthropic({ baseURL: url, apiKey: "plm_wrong" });
await assert.rejects(stranger.messages.create(ask("x")), (error) => {
  return error instanceof Anthropic.AuthenticationError && error.error.error.type === "authentication_error";
});

console.log("ok");
