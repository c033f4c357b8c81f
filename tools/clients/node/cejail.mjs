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
// A program can call functions of its caller:
//
//	await run({ code: "from tools import search; print(search(query='a'))", tools: { search: ({ query }) => [query] } });
//
// A session is a jail that stays, at a service, for several programs:
//
//	const session = await client.session({ profile: "python", context: "repl" });
//	await session.exec({ code: "x = 20" });
//	console.log((await session.exec({ code: "x + 1" })).cell.value);
//	await session.end();
//
// The members of a request are those of schema/request.json; cejail.d.mts has the types.  The profile is
// the ceiling of the limits; `options` of a Client raise it, for runs over `cejail run`.
import { spawn } from "node:child_process";
import http from "node:http";

const PROFILE = "python";
const HOME = "/box";
const WAIT = "30s"; // of one request for the end of an exec; the service waits at most 60 s

/** cejail failed or refused the request: no program ran, or its result was lost. */
export class CejailError extends Error {
  constructor(message, { code = null, hint = null, result = null, retryAfter = null } = {}) {
    super(hint ? `${message} (${hint})` : message);
    this.name = "CejailError";
    Object.assign(this, { code, hint, result, retryAfter });
  }
}

const bytesOf = (part) => ("base64" in part ? Buffer.from(part.base64, "base64") : Buffer.from(part.text ?? ""));

/** What a cell of a session with context "repl" leaves besides its output.  All of it is untrusted. */
export class Cell {
  constructor(raw) { this.raw = raw; }
  get value() { return this.raw.value ?? null; }
  get displays() { return (this.raw.displays ?? []).map((row) => ({ type: row.type, content: bytesOf(row) })); }
  get exception() { return this.raw.exception ?? null; }
  get lost() { return this.raw.lost ?? false; }
  get restarted() { return this.raw.restarted ?? false; }
  get claimed() { return this.raw.claimed ?? true; }
}

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
  get cell() { return this.raw.cell ? new Cell(this.raw.cell) : null; }
  get artifacts() {
    const rows = this.raw.artifacts.filter((row) => "text" in row || "base64" in row);
    return new Map(rows.map((row) => [row.path, bytesOf(row)]));
  }
  get limitsHit() { return Object.keys(this.raw.limits).filter((name) => this.raw.limits[name].hit); }
  get calls() { return this.raw.calls ?? []; }
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
export function request({ profile, ...rest }) {
  return { profile: profile ?? (rest.command ? "base" : PROFILE), ...programOf(rest) };
}

function programOf({ code, command, stdin, files, tools, ...rest }) {
  const made = {};
  if (tools !== undefined) made.tools = toolsOf(tools).map(({ handler, ...described }) => described);
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

// --- tools: functions of the caller that its program calls, cejail-tools(7) -------------------

const ANSWER_MAX = 16 << 20; // bytes of an answer with its newline
const VALUES_MAX = 128000; // numbers, strings, arrays, ... of an answer
const DEPTH_MAX = 31;
const ERROR_MAX = 2000; // characters of an error

/** { name, handler, description, inputSchema, ... } of each. */
function toolsOf(tools) {
  const pairs = Array.isArray(tools) ? tools.map((tool) => [tool?.name, tool]) : Object.entries(tools);
  return pairs.map(([name, tool]) => {
    const made = typeof tool === "function" ? { handler: tool, name } : { ...tool, name };
    if (typeof made.handler !== "function") throw new TypeError(`the tool '${name}' has no function; give a function, or an object with "handler"`);
    if (!name) throw new TypeError("a tool in a list has no name; give tools: { NAME: function }");
    return made;
  });
}

/** What a function has thrown, as text.  It can be an object that has none. */
function saidBy(problem) {
  try {
    return problem instanceof Error ? `${problem.name}: ${problem.message}` : String(problem);
  } catch {
    return "the function threw an object without a text";
  }
}

/** Half of a surrogate pair, which cejail does not read, is replaced. */
function inOneLine(text) {
  const line = text.trim().replace(/\s+/g, " ").slice(0, ERROR_MAX);
  return line.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** JSON.stringify() makes {} or null of values that are not JSON. */
function onlyJson(_, value) {
  const kind = value instanceof Map || value instanceof Set ? value.constructor.name : typeof value;
  if (["Map", "Set", "function", "symbol", "bigint"].includes(kind)) throw new TypeError(`it has a ${kind}`);
  if (kind === "number" && !Number.isFinite(value)) throw new TypeError(`it has the number ${value}`);
  if (kind === "string" && /\p{Surrogate}/u.test(value)) throw new TypeError("it has half of a surrogate pair");
  return value;
}

/** The number of values in a result.  cejail reads no answer with too many, or with too many in each other. */
function countOf(value, depth = 0) {
  if (depth > DEPTH_MAX) throw new TypeError(`it has more than ${DEPTH_MAX} arrays or objects in each other`);
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((sum, part) => sum + countOf(part, depth + 1), 1);
}

const failure = (message) => ({ error: { message } });

/** The JSON of { result }, or of the error that says why it cannot be one. */
function answerOf(name, value) {
  try {
    const body = JSON.stringify({ result: value ?? null }, onlyJson);
    const size = Buffer.byteLength(body);
    const values = countOf(value);
    if (size <= ANSWER_MAX && values <= VALUES_MAX) return body;
    const most = `at most ${ANSWER_MAX} bytes and ${VALUES_MAX} values are possible`;
    return JSON.stringify(failure(`the result of '${name}' has ${size} bytes of JSON with ${values} values, and ${most} (ask for less at once)`));
  } catch (problem) {
    const why = inOneLine(problem.message);
    return JSON.stringify(failure(`the result of '${name}' is not JSON: ${why} (the function must return null, a boolean, number, string, array or plain object)`));
  }
}

/** Answers calls with the functions of the tools: `send` gets the id of each, and the JSON of its answer. */
class Answering {
  #handlers;
  #send;
  #open = new Map(); // by the call's id: what cancels it

  constructor(tools, send) {
    this.#handlers = new Map(tools.map(({ name, handler }) => [name, handler]));
    this.#send = send;
  }

  async take(id, { name, arguments: given }) {
    const cancel = new AbortController();
    this.#open.set(id, cancel);
    let body;
    try {
      body = answerOf(name, await this.#handlers.get(name)(given, cancel.signal));
    } catch (problem) {
      body = JSON.stringify(failure(inOneLine(saidBy(problem))));
    }
    if (this.#open.delete(id)) await this.#send(id, body);
  }

  end(id, why) {
    const cancel = this.#open.get(id);
    this.#open.delete(id);
    cancel?.abort(new CejailError(`the call has ended: ${why}`, { code: why }));
  }

  close() {
    for (const id of [...this.#open.keys()]) this.end(id, "cancelled");
  }
}

/** Answers the calls that come from `cejail run` over a socket, until the run ends. */
async function answerSocket(socket, tools) {
  const answering = new Answering(tools, (id, body) => { socket.write(`{"id":${id},${body.slice(1)}\n`); });
  try {
    for await (const text of linesOf(socket)) {
      const call = JSON.parse(text);
      if (call.ended) answering.end(call.id, call.ended);
      else void answering.take(call.id, call);
    }
  } catch { // half a line at the end
  } finally {
    answering.close();
  }
}

const BUSY = [null, "rate_limited", "too_many_waiting", "queue_full", "draining"];
/** Sends the answer to a call at `path`, until the service has taken or refused it, or the run has ended. */
async function postAnswer(to, path, body, isOver) {
  let isRefusal = false;
  while (!isOver()) {
    try {
      return void (await textOf((await startCall(to, { path, body })).answer));
    } catch (problem) {
      const code = problem.code ?? null;
      if (BUSY.includes(code) || !(problem instanceof CejailError)) {
        await new Promise((resolve) => { setTimeout(resolve, (problem.retryAfter ?? 0.05) * 1000).unref(); });
        continue;
      }
      if (code === "not_found" || code === "call_ended" || isRefusal) return; // the call has ended
      body = JSON.stringify(failure(inOneLine(`the service does not take the answer of ${Buffer.byteLength(body)} bytes: ${problem.message}`)));
      isRefusal = true;
    }
  }
}

/** Yields the events of a run at a service, or of an exec, and answers the calls in them.  `path` has all of its kind. */
async function* answeredRows(rows, to, path, tools) {
  let run, isOver = false;
  const answering = new Answering(tools, (id, body) => postAnswer(to, `${path}/${encodeURIComponent(run)}/calls/${id}`, body, () => isOver));
  try {
    for await (const event of rows) {
      if (event.type === "start") run = event.id;
      else if (event.type === "call" && event.arguments) void answering.take(event.call, event);
      else if (event.type === "answer") answering.end(event.call, event.outcome);
      yield event;
    }
  } finally {
    isOver = true;
    answering.close();
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
function startProcess({ program, options }, body, wantsEvents, tools) {
  const given = [...(wantsEvents ? ["--events-fd"] : []), ...(tools ? ["--calls-fd"] : [])]; // "pipe" is a pair of UNIX sockets
  const words = ["run", "--request-fd", "0", "--json", "--quiet", ...given.flatMap((name, i) => [name, String(3 + i)]), ...options];
  const child = spawn(program, words, { stdio: ["pipe", wantsEvents ? "ignore" : "pipe", "pipe", ...given.map(() => "pipe")] });
  const failed = new Promise((resolve) => child.once("error", resolve));
  const ended = new Promise((resolve) => child.once("close", resolve));
  child.stdin.on("error", () => {}); // cejail ended before it read the request, and says why
  child.stdin.end(body);
  const calls = tools && child.stdio[2 + given.length];
  calls?.on("error", () => {}); // the run has ended
  if (calls) void answerSocket(calls, tools);
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

/** One request.  The service cancels a run whose connection is closed. */
async function startCall({ socket, url, token }, { method = "POST", path = "/v1/runs", body, type = "application/json", accept = "application/json" }, signal) {
  const headers = {
    ...(body === undefined ? {} : { "Content-Type": type, "Content-Length": Buffer.byteLength(body) }),
    Accept: accept,
    ...(token ? { Authorization: `Bearer ${token}` } : {}),
  };
  const where = socket ? { socketPath: socket } : { host: url.hostname, port: url.port || 80 };
  const call = http.request({ ...where, method, path, headers, agent: false });
  const cancel = () => { call.destroy(); };
  signal?.addEventListener("abort", cancel, { once: true }); // without events the response comes at the end
  const response = await new Promise((resolve, reject) => {
    call.once("response", resolve);
    call.once("error", (problem) => reject(new CejailError(`connect to the service: ${problem.message}`)));
    call.end(body);
  }).finally(() => signal?.removeEventListener("abort", cancel));
  call.on("error", () => {}); // the response has the same error
  if (response.statusCode < 200 || response.statusCode > 299) throw refusal(response, await textOf(response));
  return {
    answer: response,
    cancel,
    async explain() { throw new CejailError("the connection to the service ended without a result"); },
    end: async () => {},
  };
}

/** Of a run over a process or a connection: `start` makes { answer, cancel, explain, end }. */
async function startOne(start, signal) {
  signal?.throwIfAborted();
  const one = await start().catch((problem) => {
    signal?.throwIfAborted();
    throw problem;
  });
  if (signal?.aborted) one.cancel();
  signal?.addEventListener("abort", one.cancel, { once: true });
  return one;
}

async function resultOf(start, signal) {
  const one = await startOne(start, signal);
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

/** The lines of a stream, which ends with a result if it `has` one. */
async function* rowsOf(start, signal, hasResult) {
  const one = await startOne(start, signal);
  let isWhole = false;
  try {
    for await (const line of linesOf(one.answer)) {
      const data = parse(line);
      if (data.type === "error") throw new CejailError(data.error.message, data.error);
      isWhole = data.type === "result";
      yield data;
    }
    signal?.throwIfAborted();
    isWhole ||= !hasResult;
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

async function* eventsOf(start, signal, answered = (rows) => rows) {
  for await (const data of answered(rowsOf(start, signal, true)))
    yield data.type === "result" ? { type: "result", data, result: checked(data.result) } : { type: data.type, data, content: bytesOf(data) };
}

async function lastResult(events) {
  let last;
  for await (last of events);
  return last.result;
}

const RUNS = "/v1/runs";
const EVENTS = "application/x-ndjson";
/** Of a run or an exec at a service, with its calls answered. */
function serviceEvents(to, path, request, signal, tools) {
  const call = { path, body: JSON.stringify(request), accept: EVENTS };
  return eventsOf(() => startCall(to, call, signal), signal, tools && ((rows) => answeredRows(rows, to, path, toolsOf(tools))));
}

function serviceResult(to, path, request, signal, tools) {
  if (tools) return lastResult(serviceEvents(to, path, request, signal, tools)); // the calls are events
  return resultOf(() => startCall(to, { path, body: JSON.stringify(request) }, signal), signal);
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

  get #isLocal() { return !this.#to.socket && !this.#to.url; }

  #start(asked, wantsEvents) {
    const body = JSON.stringify(request(asked));
    return async () => startProcess(this.#to, body, wantsEvents, asked.tools && toolsOf(asked.tools));
  }

  /** Runs a program to its end.  Rejects if cejail failed or refused; how the program ended is in the result. */
  async run({ signal, ...asked }) {
    if (this.#isLocal) return resultOf(this.#start(asked, false), signal);
    return serviceResult(this.#to, RUNS, request(asked), signal, asked.tools);
  }

  /** Yields what happens; the last event has the result.  Leaving the loop cancels the run. */
  async *stream({ signal, ...asked }) {
    if (this.#isLocal) yield* eventsOf(this.#start(asked, true), signal);
    else yield* serviceEvents(this.#to, RUNS, request(asked), signal, asked.tools);
  }

  /** Without a socket: the service of this user, which cejail starts if none listens. */
  async #service() {
    const { socket, url, token, program } = this.#to;
    if (socket || url) return new Service({ socket, url, token });
    const child = spawn(program, ["session", "socket"], { stdio: ["ignore", "pipe", "pipe"] });
    const failed = new Promise((resolve) => child.once("error", resolve));
    const ended = new Promise((resolve) => child.once("close", resolve));
    const texts = Promise.all([textOf(child.stdout), textOf(child.stderr)]).catch(() => ["", ""]);
    const status = await Promise.race([failed, ended]);
    if (status instanceof Error) throw new CejailError(`start '${program}': ${status.message}`);
    const [path, said] = await texts;
    if (status !== 0) throw new CejailError(said.trim() || "cejail found no service");
    return new Service({ socket: path.trimEnd() });
  }

  /**
   * Creates a session.  Members: profile, lease, idle, context, and the settings of a jail.
   * Each exec() and stream() of the session has its `tools`, unless it has its own.
   */
  async session({ profile = PROFILE, tools, ...settings } = {}) {
    if (tools) toolsOf(tools); // refuses them before there is a session
    const service = await this.#service();
    return new Session(service, (await service.ask("POST", "/v1/sessions", { profile, ...settings })).id, tools);
  }

  /** A session that exists, for example one of `cejail session create`. */
  async attach(id, { tools } = {}) {
    const session = new Session(await this.#service(), id, tools);
    await session.info();
    return session;
  }

  /** The caller's sessions, also those that ended a short time ago. */
  async sessions() {
    return (await (await this.#service()).ask("GET", "/v1/sessions")).sessions;
  }
}

// --- sessions -----------------------------------------------------------------------------

class Service {
  constructor(to) { this.to = to; }

  /** The bytes of the answer. */
  async fetch(call) {
    const parts = [];
    const one = await startCall(this.to, call);
    try {
      for await (const part of one.answer) parts.push(part);
    } catch {
      await one.explain();
    }
    return Buffer.concat(parts);
  }

  /** The JSON of the answer. */
  async ask(method, path, body) {
    return parse((await this.fetch({ method, path, body: body && JSON.stringify(body) })).toString());
  }
}

/**
 * A jail that stays.  Its files, background processes and (with context "repl") variables remain between execs.
 * Paths are those of the jail; a relative one begins at /box.  Client.session() makes one.
 */
export class Session {
  #service;
  #path;
  #tools;

  constructor(service, id, tools) {
    this.id = id;
    this.#service = service;
    this.#path = `/v1/sessions/${encodeURIComponent(id)}`;
    this.#tools = tools;
  }

  get #execs() { return `${this.#path}/execs`; }

  #file(path) {
    const whole = path.startsWith("/") ? path : `${HOME}/${path}`;
    return `${this.#path}/files${whole.split("/").map(encodeURIComponent).join("/")}`;
  }

  /** Runs code or a command to its end.  With context "repl", code is a cell: see Result.cell. */
  async exec({ signal, tools = this.#tools, ...asked }) {
    return serviceResult(this.#service.to, this.#execs, programOf({ tools, ...asked }), signal, tools);
  }

  /** As Client.stream(). */
  async *stream({ signal, tools = this.#tools, ...asked }) {
    const program = programOf({ tools, ...asked });
    program.tools ??= false; // nobody here would answer calls of the session's tools
    yield* serviceEvents(this.#service.to, this.#execs, program, signal, tools);
  }

  /** Runs it without waiting for its end, and without tools.  With open_stdin, Exec.write() feeds it. */
  async start({ tools, ...asked }) {
    if (tools && toolsOf(tools).length > 0)
      throw new CejailError("a program of start() has no tools: nobody reads its calls", { code: "not_supported", hint: "run it with exec() or stream()" });
    const { id } = await this.#service.ask("POST", this.#execs, { ...programOf(asked), detach: true });
    return new Exec(this.#service, `${this.#execs}/${encodeURIComponent(id)}`, id);
  }

  async execs() { return (await this.#service.ask("GET", this.#execs)).execs; }

  /** Writes a file; missing directories are created. */
  async put(path, content, { executable = false } = {}) {
    const body = typeof content === "string" ? content : Buffer.from(content);
    const query = executable ? "?executable" : "";
    await this.#service.fetch({ method: "PUT", path: this.#file(path) + query, body, type: "application/octet-stream" });
  }

  /** The bytes of a regular file.  They are untrusted. */
  async get(path) {
    return this.#service.fetch({ method: "GET", path: this.#file(path), accept: "application/octet-stream" });
  }

  /** All entries below a directory. */
  async list(path = HOME) {
    const answer = await this.#service.ask("GET", `${this.#file(path).replace(/\/+$/, "")}/?list`);
    if (answer.truncated) throw new CejailError(`'${path}' has more entries than the service lists`, { code: "truncated" });
    return answer.entries;
  }

  /** A file or directory itself; of a symbolic link, the link.  The code is "not_found" if there is none. */
  async stat(path) { return this.#service.ask("GET", `${this.#file(path)}?stat`); }

  async exists(path) {
    return this.stat(path).then(() => true, (problem) => {
      if (problem.code === "not_found") return false;
      throw problem;
    });
  }

  /** Makes a directory, and those missing above it.  False: it was there. */
  async mkdir(path) { return (await this.#service.ask("POST", this.#file(path), { mkdir: true })).created; }

  /** As rename(2): a file replaces a file. */
  async rename(path, to) {
    await this.#service.ask("POST", this.#file(path), { rename: to.startsWith("/") ? to : `${HOME}/${to}` });
  }

  /** Yields the changes in a directory, until it is gone or the session ends.  Leaving the loop ends the watch. */
  async *watch(path = HOME, { signal } = {}) {
    const call = { method: "GET", path: `${this.#file(path)}?watch`, accept: EVENTS };
    for await (const { event, path: changed } of rowsOf(() => startCall(this.#service.to, call, signal), signal, false))
      yield { event, path: changed };
  }

  /** Removes a file, or a directory with everything in it. */
  async remove(path) { await this.#service.ask("DELETE", this.#file(path)); }

  /** Lets the session live this long from now: "10m". */
  async lease(duration) { return this.#service.ask("POST", `${this.#path}/lease`, { lease: duration }); }

  /** Opens only these destinations from now on; without any, nothing.  { mode: "public" }: what the profile opens.
   *  { deny }: these stay closed.  { narrow: true }: a change that would open more is refused. */
  async network(allow = [], { deny = [], mode = allow.length ? "public" : "none", narrow = false } = {}) {
    const body = { mode, ...(allow.length && { allow }), ...(deny.length && { deny }) };
    return this.#service.ask("PUT", `${this.#path}/network${narrow ? "?narrow" : ""}`, body);
  }

  /** The session as the service describes it: state, reason, lease_until, usage, ... */
  async info() { return this.#service.ask("GET", this.#path); }

  /** Ends the session with everything in it.  Does nothing if it has ended. */
  async end() {
    await this.#service.ask("DELETE", this.#path).catch((problem) => {
      if (problem.code !== "not_found" && problem.code !== "session_ended") throw problem;
    });
  }

  async [Symbol.asyncDispose ?? "asyncDispose"]() { await this.end(); }
}

/** A program that Session.start() has started. */
export class Exec {
  #service;
  #path;

  constructor(service, path, id) {
    this.id = id;
    this.#service = service;
    this.#path = path;
  }

  async #askEnd(wait) {
    const answer = await this.#service.ask("GET", `${this.#path}?wait=${wait}`);
    if (answer.state !== "finished") return null;
    if (answer.result) return checked(answer.result);
    const { message = "the service does not keep the result any more", code = "result_dropped", hint = null } = answer.error ?? {};
    throw new CejailError(message, { code, hint });
  }

  /** Waits for its end. */
  async wait() {
    for (;;) {
      const result = await this.#askEnd(WAIT);
      if (result) return result;
    }
  }

  /** The result; null: it has not ended. */
  async poll() { return this.#askEnd("1ms"); }

  /** Sends "INT", "TERM", ... to its main process. */
  async signal(name) { await this.#service.ask("POST", `${this.#path}/signal`, { signal: name }); }

  /** Feeds its standard input; with `eof`, this is the end.  Rejects with "too_many_waiting" if it does not read. */
  async write(content, { eof = false } = {}) {
    const body = typeof content === "string" ? { text: content } : blob(content);
    await this.#service.ask("POST", `${this.#path}/stdin`, { ...body, ...(eof ? { eof } : {}) });
  }

  /** Ends it with all its processes. */
  async cancel() { await this.#service.ask("DELETE", this.#path); }
}

export const run = (asked) => new Client().run(asked);
export const stream = (asked) => new Client().stream(asked);
export const session = (settings) => new Client().session(settings);
