import assert from "node:assert/strict";
import OpenAI from "openai";

const { PALIMPSEST_URL: url, PALIMPSEST_KEY: key } = process.env;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const tools = [{ type: "function", function: { name: "Read", parameters: { type: "object", properties: { path: { type: "string" } } } } }];
const ask = (text) => ({ model: "gpt-5.1", messages: [{ role: "user", content: text }], tools });

// Not streamed.
const whole = await client.chat.completions.create(ask("good morning"));
assert.match(whole.choices[0].message.content, /good morning/);
assert.equal(whole.choices[0].finish_reason, "stop");
assert.ok(whole.usage.prompt_tokens > 0);

// Streamed, without usage and with it.
for (const wanted of [undefined, { include_usage: true }]) {
  let pieces = "";
  let usages = 0;
  for await (const chunk of await client.chat.completions.create({ ...ask("good evening"), stream: true, stream_options: wanted })) {
    pieces += chunk.choices[0]?.delta.content ?? "";
    usages += chunk.usage ? 1 : 0;
    assert.ok(wanted || chunk.choices.length > 0, "a chunk that the client did not ask for");
  }
  assert.match(pieces, /good evening/);
  assert.equal(usages, wanted ? 1 : 0);
}

// A tool call and its result, streamed and not.
const streamed = async (body) => {
  const { parsed, ...message } = await client.chat.completions.stream(body).finalMessage();
  return message;
};
const atOnce = async (body) => (await client.chat.completions.create(body)).choices[0].message;
for (const send of [atOnce, streamed]) {
  const body = ask('call tool Read {"path":"a.txt"}');
  const called = await send(body);
  const [call] = called.tool_calls;
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["Read", { path: "a.txt" }]);
  for (const made of called.tool_calls) {
    delete made.function.parsed_arguments; // the SDK's own, which the API does not take
  }
  body.messages.push(called, { role: "tool", tool_call_id: call.id, content: "the content of a.txt" });
  assert.match((await send(body)).content, /the content of a\.txt/);
}

const models = await client.models.list();
assert.ok(models.data.some((model) => model.id.startsWith("gpt-")));

// The provider's errors keep their class and words.
const failing = (how, more) => client.chat.completions.create({ ...ask("x"), ...more }, { headers: { "x-double-misbehave": how } });
await assert.rejects(failing("429"), (error) => error instanceof OpenAI.RateLimitError && error.headers.get("retry-after") === "1");
await assert.rejects(failing("529"), (error) => error.status === 503 && error.code === "server_is_overloaded");
await assert.rejects(failing("500"), OpenAI.InternalServerError);
await assert.rejects(client.chat.completions.create({ ...ask("x"), messages: [] }), OpenAI.BadRequestError);
const read = async (how) => {
  for await (const chunk of await failing(how, { stream: true })) {
    assert.ok(chunk);
  }
};
for (const how of ["cut", "midstream-error"]) {
  await assert.rejects(read(how), Error, how);
}

// Ours is in the provider's shape.
const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: "plm_wrong" });
await assert.rejects(stranger.chat.completions.create(ask("x")), (error) => {
  return error instanceof OpenAI.AuthenticationError && error.code === "invalid_api_key";
});

console.log("ok");
