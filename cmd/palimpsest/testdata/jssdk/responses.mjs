import assert from "node:assert/strict";
import OpenAI from "openai";

const { PALIMPSEST_URL: url, PALIMPSEST_KEY: key } = process.env;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const tools = [{ type: "function", name: "Read", strict: false, parameters: { type: "object", properties: { path: { type: "string" } } } }];
const ask = (text) => ({ model: "gpt-5.1", store: false, input: [{ role: "user", content: text }], tools });

// Not streamed; a string is an input too.
for (const input of ["good morning", ask("good morning").input]) {
  const whole = await client.responses.create({ ...ask(""), input });
  assert.match(whole.output_text, /good morning/);
  assert.equal(whole.status, "completed");
  assert.ok(whole.usage.input_tokens > 0);
}

// Streamed: numbered without a gap, and what the SDK makes of it.
let pieces = "";
let next = 0;
const stream = client.responses.stream(ask("good evening"));
for await (const event of stream) {
  assert.equal(event.sequence_number, next++);
  pieces += event.type === "response.output_text.delta" ? event.delta : "";
}
const last = await stream.finalResponse();
assert.match(pieces, /good evening/);
assert.equal(last.output_text, pieces);

// A tool call and its result, streamed and not.
const streamed = (body) => client.responses.stream(body).finalResponse();
for (const send of [(body) => client.responses.create(body), streamed]) {
  const body = ask('call tool Read {"path":"a.txt"}');
  const called = await send(body);
  const call = called.output.find((item) => item.type === "function_call");
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["Read", { path: "a.txt" }]);
  for (const { parsed_arguments, ...item } of called.output) {
    body.input.push(item);
  }
  body.input.push({ type: "function_call_output", call_id: call.call_id, output: "the content of a.txt" });
  assert.match((await send(body)).output_text, /the content of a\.txt/);
}

// A history that the provider keeps.
const first = await client.responses.create({ ...ask("good night"), store: true });
const second = await client.responses.create({ ...ask("sleep well"), store: true, previous_response_id: first.id });
assert.match(second.output_text, /sleep well/);
const count = await client.responses.inputTokens.count({ model: "gpt-5.1", input: "good morning" });
assert.ok(count.input_tokens > 0);

// The provider's errors keep their class and words.
const failing = (how, more) => client.responses.create({ ...ask("x"), ...more }, { headers: { "x-double-misbehave": how } });
await assert.rejects(failing("429"), (error) => error instanceof OpenAI.RateLimitError && error.headers.get("retry-after") === "1");
await assert.rejects(failing("529"), (error) => error.status === 503 && error.code === "server_is_overloaded");
await assert.rejects(failing("500"), OpenAI.InternalServerError);
await assert.rejects(
  client.responses.create({ ...ask("x"), input: [{ type: "function_call_output", call_id: "call_0", output: "" }] }),
  OpenAI.BadRequestError,
);
const kinds = [];
const read = async (how) => {
  for await (const event of await failing(how, { stream: true })) {
    kinds.push(event.type);
  }
};
await assert.rejects(read("cut"), Error);
await assert.rejects(read("midstream-error"), (error) => error instanceof OpenAI.APIError && error.code === "server_error");
assert.ok(kinds.length > 0 && !kinds.includes("response.completed"));

// Ours is in the provider's shape.
const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: "plm_wrong" });
await assert.rejects(stranger.responses.create(ask("x")), (error) => {
  return error instanceof OpenAI.AuthenticationError && error.code === "invalid_api_key";
});

console.log("ok");
