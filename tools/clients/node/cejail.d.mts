// SPDX-License-Identifier: Apache-2.0
// The types of cejail.mjs.

export type Content = string | Uint8Array;

type Size = string | number;
type Duration = string | number;

/**
 * Answers a call.  What it returns becomes JSON, and what it throws the call's error.  The signal is aborted when the
 * call ends before: at its time limit, or at the end of the run.
 */
export type Handler = (args: any, signal: AbortSignal) => unknown;

/** The names are those of MCP. */
export interface Tool {
  handler: Handler;
  name?: string;
  title?: string;
  description?: string;
  inputSchema?: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
  annotations?: Record<string, unknown>;
}

/** By name; or a list of functions with names and of tools with `name`. */
export type Tools = Record<string, Handler | Tool> | (Handler | (Tool & { name: string }))[];

export interface CallLimits {
  max?: string | number;
  /** Without an answer. */
  outstanding?: string | number;
  /** In a second. */
  rate?: string | number;
  /** Of one call. */
  timeout?: Duration;
}

/** How often a program called a tool.  Refused calls did not reach the caller, and are not in `count`. */
export interface CallCount {
  /** As the program wrote it, also that of no tool.  null: calls without a name, and further names. */
  name: string | null;
  count: number;
  failed: number;
  refused: number;
}

/** What a run and a program of a session have in common: schema/request.json, schema/exec-request.json. */
interface Program {
  code?: Content;
  command?: string[];
  profile?: string;
  args?: string[];
  args_json?: unknown;
  stdin?: Content;
  files?: Record<string, Content | { content: Content; executable?: boolean }>;
  /** true or "inline:SIZE": the result has the files of /box/out. */
  artifacts?: boolean | string;
  id?: string;
  file_name?: string;
  timeout?: Duration;
  max_output?: Size;
  on_output_limit?: "truncate" | "kill";
  env?: Record<string, string>;
  workdir?: string;
  artifact_path?: string[];
  value_path?: string;
  accept_weaker?: string[];
  /** Functions that the program calls: cejail-tools(7). */
  tools?: Tools;
  calls?: CallLimits;
  /** Aborting it cancels the run. */
  signal?: AbortSignal;
}

/** The settings of a jail. */
interface Jail {
  file_name?: string;
  timeout?: Duration;
  cpu_time?: Duration;
  memory?: Size;
  cpus?: string | number;
  pids?: string | number;
  nofile?: string | number;
  disk?: Size;
  max_output?: Size;
  on_output_limit?: "truncate" | "kill";
  env?: Record<string, string>;
  workdir?: string;
  file?: string[];
  ro_bind?: string[];
  bind?: string[];
  overlay?: string[];
  tmpfs?: string[];
  connect?: string[];
  upstream?: string[];
  artifact_path?: string[];
  value_path?: string;
  network?: "public" | "none" | Record<string, unknown>;
  hostname?: string;
  rootfs?: string;
  writable?: boolean;
  noexec?: boolean;
  seccomp?: string;
  strict?: boolean;
  accept_weaker?: string[];
  tools?: Tools;
  calls?: CallLimits;
  cgroup_parent?: string;
}

/** A run: the program, and any setting of a profile that a request may have.  Without a profile: "python", and "base" for a command. */
export interface Run extends Program, Jail {}

export type Status = "exited" | "signaled" | "timeout" | "cpu_limit" | "oom" | "output_limit" | "cancelled";

/** What a cell of a session with context "repl" leaves besides its output.  All of it is untrusted. */
export class Cell {
  constructor(raw: Record<string, any>);
  readonly raw: Record<string, any>;
  /** The repr of the last expression; null without one. */
  readonly value: string | null;
  readonly displays: { type: string; content: Uint8Array }[];
  readonly exception: { type: string; message: string; traceback: string } | null;
  /** The interpreter ended in this cell: its variables are gone. */
  readonly lost: boolean;
  /** The interpreter is a new one: the variables of earlier cells are gone. */
  readonly restarted: boolean;
  /** Only the interpreter says that the cell has ended, and its exit code. */
  readonly claimed: boolean;
}

export class Result {
  constructor(raw: Record<string, any>);
  /** The whole result: schema/result.json. */
  readonly raw: Record<string, any>;
  readonly id: string;
  readonly status: Status;
  /** null unless the status is "exited". */
  readonly exitCode: number | null;
  readonly signal: number | null;
  /** The program exited with 0. */
  readonly ok: boolean;
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: Uint8Array;
  readonly stderrBytes: Uint8Array;
  readonly truncated: boolean;
  /** The JSON that the program left in /box/out/result.json: untrusted; null without it. */
  readonly value: unknown;
  /** The files of /box/out by their path, with `artifacts`.  Check names before you write them. */
  readonly artifacts: Map<string, Uint8Array>;
  /** Of a session with context "repl". */
  readonly cell: Cell | null;
  /** How often the program called each tool that it called. */
  readonly calls: CallCount[];
  readonly limitsHit: string[];
  readonly usage: Record<string, number | null>;
  readonly warnings: string[];
}

/** A line of the events: EVENTS in cejail(1). */
export type Event =
  | { type: "result"; data: Record<string, any>; result: Result }
  | {
      type: "start" | "stdout" | "stderr" | "network" | "denied" | "dropped" | "call" | "answer";
      data: Record<string, any>;
      content: Uint8Array;
      result?: undefined;
    };

/** cejail failed or refused the request: no program ran, or its result was lost. */
export class CejailError extends Error {
  /** The service's code ("queue_full"), or the stage that failed ("options"). */
  readonly code: string | null;
  readonly hint: string | null;
  /** The result with the status "setup_error", if there is one. */
  readonly result: Result | null;
  /** Seconds. */
  readonly retryAfter: number | null;
}

export interface ClientOptions {
  /** The Unix socket of a service. */
  socket?: string;
  /** "http://127.0.0.1:PORT" of a service, with `token`. */
  url?: string;
  token?: string;
  /** The path of cejail, for runs over `cejail run`. */
  program?: string;
  /** More options of `cejail run`: the ceilings of its requests, such as ["--memory", "2G"]. */
  options?: string[];
}

export class Client {
  constructor(options?: ClientOptions);
  run(run: Run): Promise<Result>;
  stream(run: Run): AsyncGenerator<Event, void, void>;
  /** Without a socket or url: at the service of this user, which cejail starts if none listens. */
  session(settings?: SessionSettings): Promise<Session>;
  /** `tools`: as in SessionSettings. */
  attach(id: string, options?: { tools?: Tools }): Promise<Session>;
  sessions(): Promise<Record<string, any>[]>;
}

/** A session, and any setting of a jail that a request may have: schema/session-request.json. */
export interface SessionSettings extends Jail {
  /** Each exec() and stream() of the session has them, unless it has its own. */
  tools?: Tools;
  profile?: string;
  /** Such as "10m". */
  lease?: Duration;
  idle?: Duration;
  renew_on_use?: boolean;
  context?: "none" | "repl";
}

/** A program in a session. */
export interface ExecOptions extends Program {
  /** At the timeout, SIGINT, and SIGKILL 2 seconds later. */
  interrupt?: boolean;
}

export interface Entry {
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  bytes: number;
  mode?: string;
  mtime?: string;
}

/** A change in a directory.  "rename" is moved away; with "overflow" changes are missing: list the directory. */
export interface Change {
  event: "create" | "write" | "chmod" | "remove" | "rename" | "overflow";
  path: string;
}

/** A jail that stays.  Paths are those of the jail; a relative one begins at /box. */
export class Session {
  private constructor();
  readonly id: string;
  exec(program: ExecOptions): Promise<Result>;
  stream(program: ExecOptions): AsyncGenerator<Event, void, void>;
  /** Its program has no tools: nobody reads its calls. */
  start(program: ExecOptions & { open_stdin?: boolean; tools?: undefined }): Promise<Exec>;
  execs(): Promise<Record<string, any>[]>;
  put(path: string, content: Content, options?: { executable?: boolean }): Promise<void>;
  get(path: string): Promise<Uint8Array>;
  list(path?: string): Promise<Entry[]>;
  stat(path: string): Promise<Entry>;
  exists(path: string): Promise<boolean>;
  mkdir(path: string): Promise<boolean>;
  rename(path: string, to: string): Promise<void>;
  /** Until the directory is gone or the session ends.  Leaving the loop, or aborting `signal`, ends the watch. */
  watch(path?: string, options?: { signal?: AbortSignal }): AsyncGenerator<Change, void, void>;
  remove(path: string): Promise<void>;
  lease(duration: string): Promise<Record<string, any>>;
  /** With `narrow`, a change that would open more is refused. */
  network(allow?: string[], options?: { deny?: string[]; mode?: "none" | "public"; narrow?: boolean }): Promise<Record<string, any>>;
  info(): Promise<Record<string, any>>;
  end(): Promise<void>;
}

/** A program that Session.start() has started. */
export class Exec {
  private constructor();
  readonly id: string;
  wait(): Promise<Result>;
  poll(): Promise<Result | null>;
  signal(name: string): Promise<void>;
  write(content: Content, options?: { eof?: boolean }): Promise<void>;
  cancel(): Promise<void>;
}

export function request(run: Run): Record<string, unknown>;
export function run(run: Run): Promise<Result>;
export function stream(run: Run): AsyncGenerator<Event, void, void>;
export function session(settings?: SessionSettings): Promise<Session>;
