// SPDX-License-Identifier: Apache-2.0
// The tools of this program: functions that whoever runs it answers.
//
//	import { describe, github, call } from "/box/tools.mjs";    // CommonJS: await import("/box/tools.mjs")
//	console.log(describe());                                    // every tool, one line each
//	console.log(describe("github.search_issues"));              // one of them
//	await github.search_issues({ query: "x" });                 // the result, or a ToolError
//	await call("github.search_issues", { query: "x" });         // by the name in tools.json
//
// `node tools.mjs` prints the types (.d.mts) of them.  cejail-tools(7) describes the protocol.
//
// cejail appends a line for each tool or server: `export const github = tools.github;`.  So that no
// name of a tool is in the way, every name outside of the function below is one that no tool has:
// globalThis, those that are exported, and those that begin with two underscores.
import __process from "node:process";
import * as __fs from "node:fs";
import * as __net from "node:net";
import * as __url from "node:url";
import * as __crypto from "node:crypto";
import * as __threads from "node:worker_threads";

const __module = (() => {
	const { Array, Buffer, Error, JSON, Map, Number, Object, Promise, Proxy, Reflect, Set, String, TypeError, URL } =
		globalThis;

	// As cejail reads them: runtime/jail/supervise/calls.h, runtime/base/json/json.h.
	const LINE_MAX = 1 << 20;
	const DEPTH_MAX = 32;
	const VALUES_MAX = 1 << 17;
	const TYPE_DEPTH_MAX = 8; // what is deeper is unknown
	const KINDS_MAX = 8; // entries of a "type" that are read; JSON has fewer types
	const SUMMARY_MAX = 100; // characters of a tool's line in describe()
	const PART_MAX = 1 << 16; // characters of a description, a schema or a signature
	const STUB_MAX = 4 << 20; // characters of a stub, about

	const FILE = new URL("tools.json", import.meta.url);

	class ToolError extends Error {
		constructor(message, tool = null) {
			super(message);
			this.name = "ToolError";
			this.tool = tool;
		}
	}

	// --- the connection: lines of JSON on one socket ------------------------------------------

	// Another program of this run may have had the socket before: no id is ever used again.
	const prefix = `${__process.pid}-${__crypto.randomBytes(4).toString("hex")}`;
	const waiting = new Map(); // id: what takes the answer
	let count = 0;
	let socket = null;
	let end = null; // why there are no more answers
	let chunks = []; // of a line that has not ended

	function connect(name) {
		const number = __process.env.CEJAIL_CALLS_FD;
		if (!number)
			throw new ToolError(
				"this run has no tools: start it with `cejail run --tools tools.json --calls-fd N`, see cejail-tools(7)",
				name,
			);
		if (!__threads.isMainThread)
			throw new ToolError("this thread is a worker: call tools in the main thread, and pass on the results", name);
		if (!isSocket(Number(number)))
			throw new ToolError(
				`descriptor ${number} is not the socket of the tools: it belongs to the program that cejail started`,
				name,
			);
		socket = new __net.Socket({ fd: Number(number), readable: true, writable: true });
		socket.on("data", receive);
		socket.on("error", (error) => close(`cejail answers no more calls: ${error.code}`));
		socket.on("close", () => close("the run is ending: cejail answers no more calls"));
		socket.unref();
	}

	// The fstatSync() of Deno knows no descriptor that Deno has not opened.
	function isSocket(fd) {
		try {
			return __fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith("socket:");
		} catch {
			return false;
		}
	}

	function failAll(message) {
		for (const take of waiting.values()) take({ error: { message } });
		waiting.clear();
	}

	function close(message) {
		end ??= message;
		failAll(end);
	}

	function receive(chunk) {
		let begin = 0;
		for (let at; (at = chunk.indexOf(10, begin)) >= 0; begin = at + 1) {
			const line = Buffer.concat([...chunks, chunk.subarray(begin, at)]);
			chunks = [];
			takeLine(line.toString());
		}
		chunks.push(chunk.subarray(begin));
	}

	function takeLine(line) {
		let answer = null;
		try {
			answer = JSON.parse(line);
		} catch {
			// like an answer without an id
		}
		const id = answer?.id ?? null;
		if (id === null) failAll(messageOf(answer) ?? "cejail's answer can't be read");
		waiting.get(id)?.(answer);
	}

	function messageOf(answer) {
		const message = answer?.error?.message;
		return typeof message === "string" ? message : null;
	}

	async function call(name, args = {}) {
		const id = `${prefix}-${++count}`;
		const line = callLine(name, id, args);
		if (!socket) connect(name);
		if (end) throw new ToolError(end, name);
		const answer = await new Promise((resolve) => {
			waiting.set(id, resolve);
			socket.ref(); // a program must not end while it waits
			socket.write(line);
		});
		waiting.delete(id);
		if (waiting.size === 0) socket.unref();
		if ("result" in answer) return answer.result;
		throw new ToolError(messageOf(answer) ?? "the tool failed and did not say why", name);
	}

	// --- arguments ------------------------------------------------------------------------------

	function callLine(name, id, args) {
		if (typeof name !== "string") throw new TypeError("the name of a tool is a string");
		if (args === null || typeof args !== "object" || Array.isArray(args))
			throw new TypeError(`${name}: the arguments are one object: {query: "x"}`);
		let text;
		try {
			text = JSON.stringify({ id, name, arguments: args }, (key, value) => {
				if (typeof value === "number" && !Number.isFinite(value))
					throw new ToolError(`${name}: an argument is no finite number: ${value}`, name);
				return value;
			});
		} catch (error) {
			if (error instanceof TypeError) throw new TypeError(`${name}: the arguments are no JSON: ${error.message}`);
			if (error instanceof ToolError || error.constructor?.name !== "RangeError") throw error;
			throw new ToolError(`${name}: the arguments nest deeper than ${DEPTH_MAX} levels`, name);
		}
		const bytes = Buffer.byteLength(text) + 1;
		if (bytes > LINE_MAX)
			throw new ToolError(`${name}: the call has ${bytes} bytes; cejail reads at most ${LINE_MAX}`, name);
		checkText(name, text);
		return `${text}\n`;
	}

	// Refuses what cejail would not read.
	function checkText(name, text) {
		let depth = 0;
		let values = 1;
		for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|\[\]|\{\}|[[{\]},]/g)) {
			if (token[0] === '"') {
				// JSON.stringify writes an escape for half of a surrogate pair, and only for that.
				if (token.replace(/\\[^u]/g, "").match(/\\u(?:0000|d[89a-f])/))
					throw new ToolError(`${name}: an argument contains a NUL character or half of a surrogate pair`, name);
				continue;
			}
			if (token === "," || token === "[" || token === "{") values++;
			if (token[0] === "[" || token[0] === "{") depth++;
			if (depth > DEPTH_MAX)
				throw new ToolError(`${name}: the arguments nest deeper than ${DEPTH_MAX} levels`, name);
			if (token.endsWith("]") || token.endsWith("}")) depth--;
		}
		if (values > VALUES_MAX)
			throw new ToolError(`${name}: the arguments have more than ${VALUES_MAX} values`, name);
	}

	// --- the catalogue --------------------------------------------------------------------------

	const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
	const textOf = (value) => (typeof value === "string" ? value : "");

	const top = Object.create(null); // name in code: a function, or an object of functions
	let functions = []; // {tool, path, call}
	let was = null; // what the file was

	function refresh() {
		const stat = __fs.statSync(FILE, { throwIfNoEntry: false });
		if (!stat || `${stat.mtimeMs} ${stat.size} ${stat.ino}` === was) return;
		let found;
		try {
			found = JSON.parse(__fs.readFileSync(FILE, "utf8"));
			if (!Array.isArray(found.tools) || found.names?.length !== found.tools.length)
				throw new Error("it is not as cejail wrote it");
		} catch (error) {
			throw new ToolError(`'${__url.fileURLToPath(FILE)}' can't be read: ${error.message}`);
		}
		was = `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
		functions = [];
		for (const name of Object.keys(top)) delete top[name];
		found.tools.forEach((tool, i) => addTool(tool, found.names[i]));
	}

	function addTool(tool, path) {
		const run = (args) => call(tool.name, args);
		const [server, name] = path.split(".");
		if (name) (top[server] ??= Object.create(null))[name] = run;
		else top[path] = run;
		Object.defineProperty(run, "name", { value: path });
		functions.push({ tool, path });
	}

	// A later cell of a session may have other tools.
	const fresh = {};
	for (const trap of ["get", "has", "ownKeys", "getOwnPropertyDescriptor"])
		fresh[trap] = (target, key) => {
			refresh();
			return Reflect[trap](target, key);
		};
	const tools = new Proxy(top, fresh);

	// --- text -------------------------------------------------------------------------------------

	// No control characters and nothing that changes the direction of text.
	const clean = (text) =>
		text.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

	const cut = (text) =>
		text.length <= PART_MAX ? text : `${text.slice(0, PART_MAX)}\n(cut after ${PART_MAX} characters)`;

	function summary(tool) {
		const line = clean(textOf(tool.description).trim().split("\n")[0]);
		return line.length <= SUMMARY_MAX ? line : `${line.slice(0, SUMMARY_MAX - 3)}...`;
	}

	// The tools, one line each; or the signature, the description and the schema of one.
	function describe(name) {
		refresh();
		if (name !== undefined) return describeOne(name);
		let text = `${functions.length} tools.  describe(NAME) shows how to call one of them.\n`;
		const servers = new Set(functions.map(({ path }) => path.split(".").slice(0, -1).join()));
		for (const server of servers) {
			const own = functions.filter(({ path }) => path.split(".").slice(0, -1).join() === server);
			const names = server ? [server] : own.map(({ path }) => path);
			text += `\nimport { ${names.join(", ")} } from "${clean(__url.fileURLToPath(import.meta.url))}";\n`;
			for (const { tool, path } of own) text += `  ${path}  ${summary(tool)}`.trimEnd() + "\n";
		}
		return text;
	}

	function describeOne(name) {
		const found = functions.find(({ tool }) => tool.name === name) ?? functions.find(({ path }) => path === name);
		if (!found) throw new ToolError(`there is no tool '${String(name)}'; describe() lists them`, name);
		const { tool, path } = found;
		let text = `${path}${signature(tool)}\n`;
		if (textOf(tool.description)) text += `\n${clean(cut(tool.description))}\n`;
		if (isObject(tool.inputSchema)) text += `\nSchema of its arguments:\n${schemaText(tool.inputSchema)}\n`;
		if (isObject(tool.outputSchema)) text += `\nSchema of its result:\n${schemaText(tool.outputSchema)}\n`;
		return text;
	}

	function schemaText(schema) {
		try {
			return clean(cut(JSON.stringify(schema, null, 2)));
		} catch {
			return "(nested too deep)";
		}
	}

	// --- types: a schema as far as TypeScript can say it --------------------------------------------

	const PLAIN = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

	const literal = (value) => clean(JSON.stringify(value));

	function typeOf(schema, depth = 0) {
		if (!isObject(schema) || depth > TYPE_DEPTH_MAX || "$ref" in schema || "allOf" in schema) return "unknown";
		if ("const" in schema) return literalOf([schema.const]);
		if (Array.isArray(schema.enum)) return literalOf(schema.enum);
		const some = [schema.anyOf, schema.oneOf].find(Array.isArray);
		if (some) return unionOf(some.map((one) => typeOf(one, depth + 1)));
		if (Array.isArray(schema.type))
			return unionOf([...new Set(schema.type.slice(0, KINDS_MAX))].map((type) => typeOf(kindOf(schema, type), depth + 1)));
		if (schema.type === "array") return `Array<${typeOf(schema.items, depth + 1)}>`;
		if (schema.type === "object") return objectType(schema, depth);
		return typeof schema.type === "string" && Object.hasOwn(PLAIN, schema.type) ? PLAIN[schema.type] : "unknown";
	}

	const kindOf = (schema, type) => (typeof type === "string" ? { ...schema, type } : null);

	const literalOf = (values) =>
		values.length > 0 && values.every((one) => one === null || typeof one !== "object")
			? unionOf(values.map(literal))
			: "unknown";

	const unionOf = (types) =>
		types.length === 0 || types.includes("unknown") ? "unknown" : [...new Set(types)].join(" | ");

	function objectType(schema, depth) {
		if (!isObject(schema.properties)) return "{ [name: string]: unknown }";
		const required = new Set(Array.isArray(schema.required) ? schema.required : []);
		const members = Object.entries(schema.properties).map(([name, member]) => {
			const key = /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : literal(name);
			return `${key}${required.has(name) ? "" : "?"}: ${typeOf(member, depth + 1)}`;
		});
		if (schema.additionalProperties !== false) members.push("[name: string]: unknown");
		return members.length > 0 ? `{ ${members.join("; ")} }` : "{}";
	}

	const ANY = "(args?: { [name: string]: unknown }): Promise<any>";

	function signature(tool) {
		const schema = isObject(tool.inputSchema) ? tool.inputSchema : {};
		const mayBeEmpty = !Array.isArray(schema.required) || schema.required.length === 0;
		const result = isObject(tool.outputSchema) ? typeOf(tool.outputSchema) : "any";
		const text = `(args${mayBeEmpty ? "?" : ""}: ${objectType(schema, 0)}): Promise<${result}>`;
		return text.length <= PART_MAX ? text : ANY;
	}

	const STUB = `// The tools of this program.
export class ToolError extends globalThis.Error { tool: string | null; }
export function call(name: string, args?: { [name: string]: unknown }): Promise<any>;
export function describe(name?: string): string;
export function stub(): string;
`;

	function comment(tool, indent) {
		if (!textOf(tool.description)) return "";
		const lines = clean(cut(tool.description.trim())).replaceAll("*/", "*\\/").split("\n");
		return `${indent}/** ${lines.join(`\n${indent} * `)} */\n`;
	}

	// A .d.mts of every tool.
	function stub() {
		refresh();
		let text = STUB;
		const all = [];
		for (const name of Object.keys(top)) {
			const own = functions.filter(({ path }) => path === name || path.startsWith(`${name}.`));
			const isTool = typeof top[name] === "function";
			text += isTool ? "\n" : `\nexport namespace ${name} {\n`;
			for (const { tool, path } of own) {
				const [indent, word] = isTool ? ["", "export function"] : ["\t", "function"];
				const isCut = text.length > STUB_MAX;
				if (!isCut) text += comment(tool, indent);
				text += `${indent}${word} ${path.slice(path.indexOf(".") + 1)}`;
				text += isCut ? `${ANY}; // cut: the stub is long\n` : `${signature(tool)};\n`;
			}
			if (!isTool) text += "}\n";
			all.push(`${name}: typeof ${name}`);
		}
		return `${text}\nexport const tools: { ${all.join("; ")} };\n`;
	}

	return { call, describe, stub, ToolError, tools };
})();

export const { call, describe, stub, ToolError, tools } = __module;

if (__process.argv[1] && __fs.existsSync(__process.argv[1]))
	if (__fs.realpathSync(__process.argv[1]) === __fs.realpathSync(__url.fileURLToPath(import.meta.url)))
		__process.stdout.write(__module.stub());
