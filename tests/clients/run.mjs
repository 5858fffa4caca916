// Runs the clients of JavaScript against a gateway: node run.mjs URL. Prints one line of JSON for each case.
//
// The server behind the gateway says "Hello", calls the tool `weather` for Paris and then for Rome before it says
// "Done", and thinks before each call. It answers a schema with {"answer": 42}, sees images, refuses "error", and never ends after "stall". A tool that
// a vendor defines and the client runs is called twice as well, and must have given "kelp 1" and "kelp 2" then.

import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOllama } from "@langchain/ollama";
import { ChatOpenAI } from "@langchain/openai";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;
const url = process.argv[2];
const model = "tiny";
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const schema = {
  type: "object",
  properties: { answer: { type: "integer" } },
  required: ["answer"],
  additionalProperties: false,
};
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const describe = { name: "weather", description: "the weather of a city" };
const CITIES = ["Paris", "Rome"];
const user = (content) => ({ role: "user", content });

/** Asks until no tool is called. `ask` takes the conversation and returns [calls, text]. */
async function loop(ask) {
  const cities = [];
  for (;;) {
    const [calls, text] = await ask();
    if (calls.length === 0) {
      assert.deepEqual(cities, CITIES);
      return assert.equal(text, "Done");
    }
    cities.push(...calls);
    assert.ok(cities.length <= 2);
  }
}

async function aborted(run) {
  const abort = new AbortController();
  await assert.rejects(run(abort.signal, () => abort.abort()), (error) => !(error instanceof assert.AssertionError));
}

function chat() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const create = (more, options) => client.chat.completions.create({ model, ...more }, options);
  const tools = [{ type: "function", function: { ...describe, parameters } }];
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
  const format = { type: "json_schema", json_schema: { name: "answer", strict: true, schema } };
  return {
    whole: async () => assert.equal((await create({ messages: [user("Hi")] })).choices[0].message.content, "Hello"),
    streamed: async () => {
      const stream = client.chat.completions.stream({ model, messages: [user("Hi")] });
      assert.equal(await stream.finalContent(), "Hello");
    },
    tools: async () => {
      const messages = [user("Weather?")];
      await loop(async () => {
        const stream = client.chat.completions.stream({ model, messages, tools });
        const { message } = (await stream.finalChatCompletion()).choices[0];
        messages.push(message);
        const calls = message.tool_calls ?? [];
        for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: "sunny" });
        return [calls.map((call) => JSON.parse(call.function.arguments).city), message.content];
      });
    },
    image: async () => {
      const answer = await create({ messages: [user([{ type: "text", text: "What?" }, image])] });
      assert.equal(answer.choices[0].message.content, "I see");
    },
    structured: async () => {
      const answer = await client.chat.completions.parse({ model, messages: [user("Hi")], response_format: format });
      assert.deepEqual(JSON.parse(answer.choices[0].message.content), { answer: 42 });
    },
    error: () => assert.rejects(create({ messages: [user("error")] }), OpenAI.BadRequestError),
    abort: () =>
      aborted(async (signal, abort) => {
        for await (const _ of await create({ messages: [user("stall")], stream: true }, { signal })) abort();
        throw new Error("aborted");
      }),
    embeddings: async () => {
      const made = await client.embeddings.create({ model, input: "a", encoding_format: "float" });
      assert.deepEqual(made.data[0].embedding, [0.5, 1]);
    },
  };
}

function responses() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const create = (more, options) => client.responses.create({ model, ...more }, options);
  const tools = [{ type: "function", ...describe, parameters, strict: false }];
  const image = { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${PNG}` };
  return {
    whole: async () => assert.equal((await create({ input: "Hi" })).output_text, "Hello"),
    streamed: async () => {
      const answer = await client.responses.stream({ model, input: "Hi" }).finalResponse();
      assert.equal(answer.output_text, "Hello");
    },
    tools: async () => {
      const input = [user("Weather?")];
      await loop(async () => {
        const answer = await client.responses.stream({ model, input, tools }).finalResponse();
        input.push(...answer.output);
        const calls = answer.output.filter((item) => item.type === "function_call");
        for (const { call_id } of calls) input.push({ type: "function_call_output", call_id, output: "sunny" });
        return [calls.map((call) => JSON.parse(call.arguments).city), answer.output_text];
      });
    },
    continued: async () => {
      const first = await create({ input: "Hi" });
      const second = await create({ input: "Hi", previous_response_id: first.id });
      assert.equal(second.output_text, "Hello");
      const items = [];
      for await (const item of client.responses.inputItems.list(second.id)) items.push(item.role);
      assert.deepEqual(items, ["user", "assistant", "user"]);
      await client.responses.delete(first.id);
    },
    image: async () => {
      const answer = await create({ input: [user([{ type: "input_text", text: "What?" }, image])] });
      assert.equal(answer.output_text, "I see");
    },
    structured: async () => {
      const format = { type: "json_schema", name: "answer", strict: true, schema };
      const answer = await client.responses.parse({ model, input: "Hi", text: { format } });
      assert.deepEqual(JSON.parse(answer.output_text), { answer: 42 });
    },
    error: () => assert.rejects(create({ input: "error" }), OpenAI.BadRequestError),
    abort: () =>
      aborted(async (signal, abort) => {
        for await (const _ of await create({ input: "stall", stream: true }, { signal })) abort();
        throw new Error("aborted");
      }),
  };
}

function messages() {
  const client = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
  const least = { model, max_tokens: 99 };
  const tools = [{ ...describe, input_schema: parameters }];
  const text = (answer) => answer.content.filter((one) => one.type === "text").map((one) => one.text).join("");
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
  return {
    whole: async () => assert.equal(text(await client.messages.create({ ...least, messages: [user("Hi")] })), "Hello"),
    streamed: async () => {
      const answer = await client.messages.stream({ ...least, messages: [user("Hi")] }).finalMessage();
      assert.equal(text(answer), "Hello");
    },
    tools: async () => {
      const turns = [user("Weather?")];
      await loop(async () => {
        const answer = await client.messages.stream({ ...least, messages: turns, tools }).finalMessage();
        const calls = answer.content.filter((block) => block.type === "tool_use");
        const results = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "sunny" }));
        turns.push({ role: "assistant", content: answer.content }, user(results));
        return [calls.map((call) => call.input.city), text(answer)];
      });
    },
    image: async () => {
      const content = [{ type: "text", text: "What?" }, image];
      assert.equal(text(await client.messages.create({ ...least, messages: [user(content)] })), "I see");
    },
    structured: async () => {
      const output_config = { format: { type: "json_schema", schema } };
      const answer = await client.messages.create({ ...least, messages: [user("Hi")], output_config });
      assert.deepEqual(JSON.parse(text(answer)), { answer: 42 });
    },
    counted: async () => {
      const { input_tokens } = await client.messages.countTokens({ model, messages: [user("Hi")] });
      assert.equal(input_tokens, 1);
    },
    error: () =>
      assert.rejects(client.messages.create({ ...least, messages: [user("error")] }), Anthropic.BadRequestError),
    abort: () =>
      aborted(async (signal, abort) => {
        const stream = await client.messages.create({ ...least, messages: [user("stall")], stream: true }, { signal });
        for await (const event of stream) if (event.type === "content_block_delta") abort();
        throw new Error("aborted");
      }),
  };
}

function ollama() {
  const client = new Ollama({ host: url });
  const tools = [{ type: "function", function: { ...describe, parameters } }];
  const said = async (more) => (await client.chat({ model, ...more })).message;
  return {
    whole: async () => assert.equal((await said({ messages: [user("Hi")] })).content, "Hello"),
    streamed: async () => {
      let text = "";
      for await (const part of await client.chat({ model, messages: [user("Hi")], stream: true }))
        text += part.message.content;
      assert.equal(text, "Hello");
    },
    tools: async () => {
      const turns = [user("Weather?")];
      await loop(async () => {
        const message = await said({ messages: turns, tools });
        const calls = message.tool_calls ?? [];
        turns.push(message, ...calls.map(() => ({ role: "tool", tool_name: "weather", content: "sunny" })));
        return [calls.map((call) => call.function.arguments.city), message.content];
      });
    },
    image: async () => {
      const message = await said({ messages: [{ ...user("What?"), images: [PNG] }] });
      assert.equal(message.content, "I see");
    },
    structured: async () => {
      const message = await said({ messages: [user("Hi")], format: schema });
      assert.deepEqual(JSON.parse(message.content), { answer: 42 });
    },
    embeddings: async () => {
      assert.deepEqual((await client.embed({ model, input: "a" })).embeddings, [[0.5, 1]]);
      assert.deepEqual((await client.ps()).models, []);
    },
    error: () => assert.rejects(said({ messages: [user("error")] }), /no/),
    abort: () =>
      aborted(async () => {
        const stream = await client.chat({ model, messages: [user("stall")], stream: true });
        for await (const _ of stream) stream.abort();
      }),
  };
}

function vercel(language) {
  const weather = tool({
    description: "the weather of a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async () => "sunny",
  });
  const least = { model: language, maxRetries: 0 };
  const agent = { ...least, tools: { weather }, stopWhen: stepCountIs(5), prompt: "Weather?" };
  const called = (steps) => steps.flatMap((step) => step.toolCalls.map((call) => call.input.city));
  return {
    whole: async () => assert.equal((await generateText({ ...least, prompt: "Hi" })).text, "Hello"),
    streamed: async () => assert.equal(await streamText({ ...least, prompt: "Hi" }).text, "Hello"),
    tools: async () => {
      const { text, steps } = await generateText(agent);
      assert.deepEqual([called(steps), text], [CITIES, "Done"]);
    },
    "streamed tools": async () => {
      const answer = streamText(agent);
      assert.equal(await answer.text, "Done");
      assert.deepEqual(called(await answer.steps), CITIES);
    },
    image: async () => {
      const content = [{ type: "text", text: "What?" }, { type: "image", image: Buffer.from(PNG, "base64") }];
      assert.equal((await generateText({ ...least, messages: [user(content)] })).text, "I see");
    },
    structured: async () => {
      const { object } = await generateObject({ ...least, prompt: "Hi", schema: z.object({ answer: z.number() }) });
      assert.deepEqual(object, { answer: 42 });
    },
    error: () => assert.rejects(generateText({ ...least, prompt: "error" }), { name: "AI_APICallError" }),
    // It would be AI_RetryError after three calls.
    "paid once": () => assert.rejects(generateText({ model: language, prompt: "broken" }), { name: "AI_APICallError" }),
    abort: () =>
      aborted(async (abortSignal, abort) => {
        const { textStream } = streamText({ ...least, prompt: "stall", abortSignal, onError: () => {} });
        for await (const _ of textStream) abort();
        throw new Error("aborted");
      }),
  };
}

/** Reasoning before a model whose client asks for a summary, over three turns. It looks for it there alone. */
function summaries(language) {
  const inputSchema = z.object({ city: z.string() });
  const weather = tool({ description: describe.description, inputSchema, execute: async () => "sunny" });
  const openai = { forceReasoning: true, reasoningSummary: "auto" };
  const agent = {
    model: language, maxRetries: 0, tools: { weather }, stopWhen: stepCountIs(5), prompt: "Weather?",
    providerOptions: { openai },
  };
  const thoughts = CITIES.map((city) => `I think of ${city}.`);
  const thought = (steps) => steps.map((step) => step.reasoningText).filter(Boolean);
  return {
    summaries: async () => {
      const { text, steps } = await generateText(agent);
      assert.deepEqual([thought(steps), text], [thoughts, "Done"]);
    },
    "streamed summaries": async () => {
      const answer = streamText(agent);
      assert.equal(await answer.text, "Done");
      assert.deepEqual(thought(await answer.steps), thoughts);
    },
  };
}

/** Tools that a vendor defines and the client runs, over three turns. Each is a function that makes it of its run. */
function run(language, tools) {
  const cases = {};
  for (const [name, [made, output]] of Object.entries(tools))
    cases[`runs ${name}`] = async () => {
      let count = 0;
      const execute = async () => output(`kelp ${++count}`);
      const least = { model: language, maxRetries: 0, stopWhen: stepCountIs(5), prompt: "Run." };
      const answer = streamText({ ...least, tools: { [name]: made({ execute }) } });
      assert.deepEqual([await answer.text, count], ["Done", 2]);
    };
  return cases;
}

function langchain(language) {
  const bound = language.bindTools([{ ...describe, schema: z.object({ city: z.string() }) }]);
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
  return {
    whole: async () => assert.equal((await language.invoke("Hi")).text, "Hello"),
    streamed: async () => {
      let text = "";
      for await (const part of await language.stream("Hi")) text += part.text;
      assert.equal(text, "Hello");
    },
    tools: async () => {
      const turns = [new HumanMessage("Weather?")];
      await loop(async () => {
        const answer = await bound.invoke(turns);
        const results = answer.tool_calls.map(({ id }) => new ToolMessage({ content: "sunny", tool_call_id: id }));
        turns.push(answer, ...results);
        return [answer.tool_calls.map((call) => call.args.city), answer.text];
      });
    },
    image: async () => {
      const answer = await language.invoke([new HumanMessage({ content: [{ type: "text", text: "What?" }, image] })]);
      assert.equal(answer.text, "I see");
    },
    structured: async () => {
      const answers = language.withStructuredOutput(z.object({ answer: z.number() }), { method: "jsonSchema" });
      assert.deepEqual(await answers.invoke("Hi"), { answer: 42 });
    },
    error: () => assert.rejects(language.invoke("error")),
    abort: () =>
      aborted(async (signal, abort) => {
        for await (const _ of await language.stream("stall", { signal })) abort();
        throw new Error("aborted");
      }),
  };
}

const base = { baseURL: `${url}/v1`, apiKey: "none" };
const own = { model, apiKey: "none", maxRetries: 0, configuration: { baseURL: base.baseURL } };
const [forOpenAI, forAnthropic] = [createOpenAI(base), createAnthropic(base)];
const shell = (stdout) => ({ output: [{ stdout, stderr: "", outcome: { type: "exit", exitCode: 0 } }] });
const runByOpenAI = {
  shell: [forOpenAI.tools.shell, shell],
  local_shell: [forOpenAI.tools.localShell, (output) => ({ output })],
  apply_patch: [forOpenAI.tools.applyPatch, (output) => ({ status: "completed", output })],
};
const runByAnthropic = {
  bash: [forAnthropic.tools.bash_20250124, String],
  str_replace_based_edit_tool: [forAnthropic.tools.textEditor_20250728, String],
  memory: [forAnthropic.tools.memory_20250818, String],
};
const CLIENTS = {
  openai: chat(),
  "openai responses": responses(),
  anthropic: messages(),
  ollama: ollama(),
  "ai openai": { ...vercel(forOpenAI(model)), ...summaries(forOpenAI(model)), ...run(forOpenAI(model), runByOpenAI) },
  "ai openai-compatible": vercel(createOpenAICompatible({ ...base, name: "own", supportsStructuredOutputs: true })(model)),
  "ai anthropic": { ...vercel(forAnthropic(model)), ...run(forAnthropic(model), runByAnthropic) },
  "langchain openai": langchain(new ChatOpenAI(own)),
  "langchain responses": langchain(new ChatOpenAI({ ...own, useResponsesApi: true })),
  "langchain anthropic": langchain(
    new ChatAnthropic({ model, apiKey: "none", maxRetries: 0, anthropicApiUrl: url, maxTokens: 99 }),
  ),
  "langchain ollama": langchain(new ChatOllama({ model, baseUrl: url, maxRetries: 0 })),
};

for (const [client, cases] of Object.entries(CLIENTS))
  for (const [name, run] of Object.entries(cases)) {
    let error = null;
    try {
      await run();
    } catch (raised) {
      error = String(raised?.stack ?? raised);
    }
    console.log(JSON.stringify({ case: `${client}: ${name}`, error }));
  }
process.exit(0);
