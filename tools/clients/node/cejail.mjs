// SPDX-License-Identifier: Apache-2.0
// cejail - run untrusted programs in a jail, from Node.js.  Needs nothing but its own library.
//
//	import { run } from "./cejail.mjs";
//	const result = await run({ code: "print(6 * 7)" });
//	console.log(result.status, result.stdout);
//
// A run goes over `cejail run`, or over the socket of a service (cejail-serve(8)):
//
//	const client = new Client({ socket: "/run/cejail/api.sock" });
//	for await (const event of client.stream({ code: "print('now')", timeout: "5s" })) ...
//
// The members of a request are those of schema/request.json; cejail.d.mts has the types.  The profile is
// the ceiling of the limits; `options` of a Client raise it, for runs over `cejail run`.
import { spawn } from "node:child_process";
import http from "node:http";

const PROFILE = "python";

/** cejail failed or refused the request: no program ran, or its result was lost. */
export class CejailError extends Error {
  constructor(message, { code = null, hint = null, result = null, retryAfter = null } = {}) {
    super(hint ? `${message} (${hint})` : message);
    this.name = "CejailError";
    Object.assign(this, { code, hint, result, retryAfter });
  }
}

const bytesOf = (part) => ("base64" in part ? Buffer.from(part.base64, "base64") : Buffer.from(part.text ?? ""));

/** How a run ended.  `raw` is the whole result: schema/result.json. */
export class Result {
  constructor(raw) { this.raw = raw; }
  get id() { return this.raw.id; }
  get status() { return this.raw.status; }
  get exitCode() { return this.raw.exit_code; }
  get signal() { return this.raw.signal; }
  get ok() { return this.status === "exited" && this.exitCode === 0; }
  get stdoutBytes() { return bytesOf(this.raw.stdout); }
  get stderrBytes() { return bytesOf(this.raw.stderr); }
  get stdout() { return this.stdoutBytes.toString(); }
  get stderr() { return this.stderrBytes.toString(); }
  get truncated() { return this.raw.stdout.truncated || this.raw.stderr.truncated; }
  get value() { return this.raw.value ?? null; }
  get artifacts() {
    const rows = this.raw.artifacts.filter((row) => "text" in row || "base64" in row);
    return new Map(rows.map((row) => [row.path, bytesOf(row)]));
  }
  get limitsHit() { return Object.keys(this.raw.limits).filter((name) => this.raw.limits[name].hit); }
  get usage() { return this.raw.usage; }
  get warnings() { return this.raw.warnings; }
}

// --- requests ---------------------------------------------------------------------------

const blob = (content) => (typeof content === "string" ? content : { base64: Buffer.from(content).toString("base64") });

function fileOf(path, file) {
  const plain = typeof file === "string" || file instanceof Uint8Array;
  const content = blob(plain ? file : file.content);
  const row = { path, ...(typeof content === "string" ? { text: content } : content) };
  return !plain && file.executable ? { ...row, executable: true } : row;
}

/** The JSON object of a run.  Members that are undefined are left out. */
export function request({ code, command, profile, stdin, files, ...rest }) {
  const made = { profile: profile ?? (command ? "base" : PROFILE) };
  if (code !== undefined) made.code = blob(code);
  if (command !== undefined) made.command = command;
  if (stdin !== undefined) made.stdin = blob(stdin);
  if (files !== undefined) made.files = Object.entries(files).map(([path, file]) => fileOf(path, file));
  return Object.assign(made, rest);
}

function checked(raw) {
  if (raw?.schema !== "cejail.result/1") throw new CejailError("this is not a result of cejail");
  const result = new Result(raw);
  if (result.status !== "setup_error") return result;
  const { message, stage, hint } = raw.error;
  throw new CejailError(message, { code: stage, hint, result });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new CejailError("cejail's answer is not JSON");
  }
}

// --- one run: over a process, or over a connection ---------------------------------------

async function textOf(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString();
}

async function* linesOf(stream) {
  let rest = [];
  for await (const part of stream) {
    let from = 0;
    for (let end = part.indexOf(10); end >= 0; end = part.indexOf(10, from)) {
      yield Buffer.concat([...rest, part.subarray(from, end)]).toString();
      rest = [];
      from = end + 1;
    }
    rest.push(part.subarray(from));
  }
}

/** One `cejail run`: resolves with { lines | text, cancel }. */
function startProcess({ program, options }, body, wantsEvents) {
  const events = wantsEvents ? ["--events-fd", "3"] : [];
  const words = ["run", "--request-fd", "0", "--json", "--quiet", ...events, ...options];
  const child = spawn(program, words, { stdio: ["pipe", wantsEvents ? "ignore" : "pipe", "pipe", ...(wantsEvents ? ["pipe"] : [])] });
  const failed = new Promise((resolve) => child.once("error", resolve));
  const ended = new Promise((resolve) => child.once("close", resolve));
  child.stdin.on("error", () => {}); // cejail ended before it read the request, and says why
  child.stdin.end(body);
  const said = textOf(child.stderr).catch(() => "");
  return {
    answer: wantsEvents ? child.stdio[3] : child.stdout,
    cancel: () => { child.kill("SIGTERM"); }, // ends the run with all its processes
    async explain() { // why there is no answer
      const problem = await Promise.race([failed, ended]);
      if (problem instanceof Error) throw new CejailError(`start '${program}': ${problem.message}`);
      throw new CejailError((await said).trim() || `cejail ended with ${problem} and no result`);
    },
    end: () => Promise.race([failed, ended]),
  };
}

function refusal(response, text) {
  let error;
  try {
    error = JSON.parse(text).error;
  } catch {
    return new CejailError(`the service answered with HTTP status ${response.statusCode}`);
  }
  const after = Number(response.headers["retry-after"]);
  return new CejailError(error.message, { code: error.code, hint: error.hint, retryAfter: after > 0 ? after : null });
}

/** One POST /v1/runs.  The service cancels a run whose connection is closed. */
async function startCall({ socket, url, token }, body, wantsEvents, signal) {
  const headers = {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    Accept: wantsEvents ? "application/x-ndjson" : "application/json",
    ...(token ? { Authorization: `Bearer ${token}` } : {}),
  };
  const where = socket ? { socketPath: socket } : { host: url.hostname, port: url.port || 80 };
  const call = http.request({ ...where, method: "POST", path: "/v1/runs", headers, agent: false });
  const cancel = () => { call.destroy(); };
  signal?.addEventListener("abort", cancel, { once: true }); // without events the response comes at the end
  const response = await new Promise((resolve, reject) => {
    call.once("response", resolve);
    call.once("error", (problem) => reject(new CejailError(`connect to the service: ${problem.message}`)));
    call.end(body);
  }).finally(() => signal?.removeEventListener("abort", cancel));
  call.on("error", () => {}); // the response has the same error
  if (response.statusCode !== 200) throw refusal(response, await textOf(response));
  return {
    answer: response,
    cancel,
    async explain() { throw new CejailError("the connection to the service ended without a result"); },
    end: async () => {},
  };
}

// --- clients ------------------------------------------------------------------------------

export class Client {
  #to;

  constructor({ socket, url, token, program = "cejail", options = [] } = {}) {
    if (socket && url) throw new TypeError("a service has a socket or a url");
    if ((socket || url) && options.length > 0)
      throw new TypeError("the options are those of `cejail run`; a service has its own configuration");
    this.#to = { socket, url: url && new URL(url), token, program, options };
    if (url && this.#to.url.protocol !== "http:") throw new TypeError(`'${url}' is not http://HOST:PORT`);
  }

  async #start(asked, wantsEvents, signal) {
    signal?.throwIfAborted();
    const body = JSON.stringify(request(asked));
    const isService = this.#to.socket || this.#to.url;
    const one = isService
      ? await startCall(this.#to, body, wantsEvents, signal).catch((problem) => {
          signal?.throwIfAborted();
          throw problem;
        })
      : startProcess(this.#to, body, wantsEvents);
    if (signal?.aborted) one.cancel();
    signal?.addEventListener("abort", one.cancel, { once: true });
    return one;
  }

  /** Runs a program to its end.  Rejects if cejail failed or refused; how the program ended is in the result. */
  async run({ signal, ...asked }) {
    const one = await this.#start(asked, false, signal);
    try {
      const text = await textOf(one.answer).catch(() => "");
      signal?.throwIfAborted();
      if (text === "") await one.explain();
      return checked(parse(text));
    } finally {
      signal?.removeEventListener("abort", one.cancel);
      await one.end();
    }
  }

  /** Yields what happens; the last event has the result.  Leaving the loop cancels the run. */
  async *stream({ signal, ...asked }) {
    const one = await this.#start(asked, true, signal);
    let isWhole = false;
    try {
      for await (const line of linesOf(one.answer)) {
        const data = parse(line);
        if (data.type === "error") throw new CejailError(data.error.message, data.error);
        isWhole = data.type === "result";
        if (isWhole) yield { type: "result", data, result: checked(data.result) };
        else yield { type: data.type, data, content: bytesOf(data) };
      }
      signal?.throwIfAborted();
      if (!isWhole) await one.explain();
    } catch (problem) {
      signal?.throwIfAborted();
      if (problem instanceof CejailError) throw problem;
      await one.explain();
    } finally {
      signal?.removeEventListener("abort", one.cancel);
      if (!isWhole) one.cancel();
      await one.end();
    }
  }
}

export const run = (asked) => new Client().run(asked);
export const stream = (asked) => new Client().stream(asked);
