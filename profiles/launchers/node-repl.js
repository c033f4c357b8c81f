// SPDX-License-Identifier: Apache-2.0
// The Node.js of a session with "context": "repl": node ... -e LINE [MODULE...]
// LINE reads this text from descriptor 3 and runs it: plan_launcher.c.  Descriptor 3 then carries
// frames in both directions: one byte for the kind, four for the size (little endian), the data.  To
// us come the parts of a cell, its code last; we answer with what the cell shows, its value or its
// exception, and its end: repl_channel.h lists the kinds.
// V8's own REPL mode evaluates a cell: const and let may be declared again, await stands at the top.
// The code of a cell runs in this process, so whatever we send is data and no evidence.
{
	const fs = require("fs");
	const inspector = require("inspector");
	const Module = require("module");
	const path = require("path");
	const util = require("util");
	const vm = require("vm");
	const CHANNEL = 3;
	const VALUE_MAX = 60 << 10; // bytes; all limits are below those of repl_channel.h
	const MESSAGE_MAX = 16 << 10;
	const TRACEBACK_MAX = 60 << 10;
	const DISPLAYS_MAX = 32;
	const DISPLAY_MAX = 4 << 20;
	const DISPLAYS_BYTES_MAX = 8 << 20;
	const INTERRUPTED = Symbol("interrupted");

	// --- the channel ---------------------------------------------------------------------

	const frame = (kind, data) => {
		const head = Buffer.alloc(5);
		head.write(kind, 0, "latin1");
		head.writeUInt32LE(data.length, 1);
		return Buffer.concat([head, data]);
	};
	// Descriptor 3 does not block for reading, which this process does while its timers go on.
	const pause = new Int32Array(new SharedArrayBuffer(4));
	const write = (rest) => {
		while (rest.length > 0) {
			try {
				rest = rest.subarray(fs.writeSync(CHANNEL, rest));
			} catch (error) {
				if (error.code !== "EAGAIN") process.reallyExit(1); // closed by the cell
				Atomics.wait(pause, 0, 0, 1);
			}
		}
	};

	// In guarded() a SIGINT can end a write, and nobody knows how much of the frame is written: there
	// frames wait.
	const waiting = [];
	let isGuarded = false;
	const send = (kind, data = Buffer.alloc(0)) => {
		waiting.push(frame(kind, data));
		if (!isGuarded) flush();
	};
	const flush = () => {
		while (waiting.length > 0) write(waiting.shift());
	};

	// A SIGINT that ends a write of Node's own stream leaves it waiting for that write: nothing that is
	// written later would come.
	const writeDirectly = (stream) => {
		stream.write = (chunk, encoding, done = encoding) => {
			const charset = typeof encoding === "string" ? encoding : "utf8";
			let rest = chunk instanceof Uint8Array ? chunk : Buffer.from(chunk, charset);
			let failure = null;
			while (rest.length > 0 && !failure) {
				try {
					rest = rest.subarray(fs.writeSync(stream.fd, rest));
				} catch (error) {
					if (error.code !== "EAGAIN") failure = error;
					else Atomics.wait(pause, 0, 0, 1);
				}
			}
			if (typeof done === "function") process.nextTick(done, failure);
			return failure === null;
		};
	};

	const toBytes = (text, limit) => {
		const clean = text.slice(0, limit).toWellFormed?.() ?? text.slice(0, limit);
		const data = Buffer.from(clean.replaceAll("\0", "\\x00"));
		if (text.length <= limit && data.length <= limit) return data;
		let end = limit - 3;
		while (end > 0 && (data[end] & 0xc0) === 0x80) end--;
		return Buffer.concat([data.subarray(0, end), Buffer.from("…")]);
	};

	// --- what a cell shows ---------------------------------------------------------------

	let displays = { count: 0, size: 0, dropped: 0 };
	const addDisplay = (mime, value) => {
		const data = Buffer.from(value);
		const isTooMuch = displays.count >= DISPLAYS_MAX || data.length > DISPLAY_MAX;
		if (isTooMuch || displays.size + data.length > DISPLAYS_BYTES_MAX) {
			displays.dropped++;
			return;
		}
		displays.count++;
		displays.size += data.length;
		send("D", Buffer.concat([Buffer.from(mime + "\0"), data]));
	};

	// The methods that Deno's Jupyter kernel and tslab have made customary.
	const BUNDLE = Symbol.for("Jupyter.display");
	const TYPES = [
		"text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg",
		"text/latex", "application/json",
	];
	const IS_BASE64 = new Set(["image/png", "image/jpeg"]);
	const bundleOf = (value) => {
		try {
			const method = value?.[BUNDLE] ?? value?.toMimeBundle;
			return typeof method === "function" ? method.call(value) : null;
		} catch {
			return null;
		}
	};
	const formOf = (mime, data) => {
		if (IS_BASE64.has(mime) && typeof data === "string") return Buffer.from(data, "base64");
		if (mime === "application/json" && typeof data !== "string") return JSON.stringify(data);
		return data;
	};
	const showRich = (value) => {
		const bundle = bundleOf(value);
		if (bundle === null || typeof bundle !== "object") return false;
		let isShown = false;
		for (const mime of TYPES) {
			if (bundle[mime] === undefined) continue;
			const data = formOf(mime, bundle[mime]);
			if (typeof data !== "string" && !ArrayBuffer.isView(data)) continue;
			addDisplay(mime, data);
			isShown = true;
		}
		return isShown;
	};
	const inspect = (value) =>
		util.inspect(value, { depth: 4, maxArrayLength: 1000, maxStringLength: VALUE_MAX });
	const display = (...values) => {
		for (const value of values) if (!showRich(value)) console.log(inspect(value));
	};

	// --- evaluation ----------------------------------------------------------------------

	const session = new inspector.Session();
	session.connect();
	const post = (method, parameters) =>
		new Promise((resolve, reject) => {
			session.post(method, parameters, (error, answer) => {
				error ? reject(error) : resolve(answer);
			});
		});

	// What the inspector calls by a name, as an object of ours.
	const taken = { value: undefined };
	let takenId;
	const learnTakenId = () => {
		const name = "__cejail_taken";
		globalThis[name] = taken;
		session.post("Runtime.evaluate", { expression: name }, (error, answer) => {
			takenId = answer.result.objectId;
		});
		delete globalThis[name];
	};
	const localOf = (remote) => {
		if (remote.objectId === undefined) {
			if (remote.unserializableValue === undefined) return remote.value;
			return vm.runInThisContext(`(${remote.unserializableValue})`); // -0, NaN, 1n
		}
		session.post("Runtime.callFunctionOn", {
			objectId: takenId,
			functionDeclaration: "function (value) { this.value = value; }",
			arguments: [{ objectId: remote.objectId }],
		});
		session.post("Runtime.releaseObject", { objectId: remote.objectId });
		const value = taken.value;
		taken.value = undefined;
		return value;
	};

	// A SIGINT ends what vm has started; while the cell awaits, the handler does.  Between the two a
	// SIGINT can be lost, so the keeper of the session sends a second one: session_cell.c.
	let interrupt = () => {};
	process.on("SIGINT", () => interrupt());

	// process.exit() ends the cell and not the interpreter, so that variables stay.  The program can
	// catch what it throws, but the status stays.
	const EXITED = Symbol("exited");
	let exitStatus = null, leave = () => {};
	process.exit = (code = process.exitCode) => {
		exitStatus ??= Number.isInteger(Number(code ?? 0)) ? Number(code ?? 0) & 0xff : 1;
		process.exitCode = undefined;
		const error = Object.assign(new Error(String(exitStatus)), { name: "Exit", [EXITED]: true });
		leave(error);
		throw error;
	};
	const interrupted = () => Object.assign(new Error("interrupted"), { name: "Interrupt", [INTERRUPTED]: true });
	const GO = "__cejail_go";
	const go = new vm.Script(`${GO}()`, { filename: "cejail" });
	const guarded = (act) => {
		let made;
		Object.defineProperty(globalThis, GO, {
			configurable: true,
			value: () => {
				delete globalThis[GO];
				made = act();
			},
		});
		isGuarded = true;
		try {
			go.runInThisContext({ breakOnSigint: true, displayErrors: false });
		} catch (error) {
			if (error?.code === "ERR_SCRIPT_EXECUTION_INTERRUPTED") throw interrupted();
			throw error;
		} finally {
			isGuarded = false;
			flush();
		}
		return made;
	};

	// 'B' says that an interrupt has an effect from now on.
	const evaluate = async (number, code) => {
		const begun = Buffer.alloc(4);
		begun.writeUInt32LE(number);
		const stopped = new Promise((resolve, reject) => {
			interrupt = () => reject(interrupted());
			leave = reject;
		});
		stopped.catch(() => {});
		try {
			const answered = guarded(() => {
				write(frame("B", begun)); // it is small: whole, or not at all
				return post("Runtime.evaluate", {
					expression: `${code}\n//# sourceURL=cell-${number}`,
					replMode: true,
					awaitPromise: true,
				});
			});
			answered.catch(() => {});
			const answer = await Promise.race([answered, stopped]);
			const value = localOf(answer.exceptionDetails?.exception ?? answer.result);
			return { isThrown: answer.exceptionDetails !== undefined, value, answer };
		} finally {
			interrupt = leave = () => {};
		}
	};

	// --- its input -----------------------------------------------------------------------

	// The lowest free descriptor is what open(2) returns: standard input's.
	const openInput = (data) => {
		const name = data ? `/tmp/.stdin-${process.pid}` : "/dev/null";
		if (data) fs.writeFileSync(name, data);
		fs.closeSync(0);
		fs.openSync(name, "r");
		if (data) fs.unlinkSync(name);
	};

	// --- a cell --------------------------------------------------------------------------

	const cleanStack = (stack) => {
		const lines = stack.split("\n");
		const ours = lines.findIndex((line) => /^ {4}at .*\bSession\.post\b.*node:inspector/.test(line));
		return (ours < 0 ? lines : lines.slice(0, ours)).join("\n");
	};
	// V8's REPL mode has no loader of modules.
	// "Invalid host defined options" is the first one of Node 18.
	const NO_IMPORT = /^(A dynamic import callback was not specified|Invalid host defined options|Cannot use import statement)/;
	const describe = (error) => {
		if (error instanceof Error && NO_IMPORT.test(error.message))
			error.message += ": a cell loads modules with require()";
		if (!util.types.isNativeError(error))
			return ["Uncaught", String(inspect(error)), `Uncaught ${inspect(error)}`];
		const type = String(error.name ?? "Error"), message = String(error.message ?? "");
		if (error[INTERRUPTED]) return [type, message, `${type}: ${message}`];
		if (typeof error.stack === "string") error.stack = cleanStack(error.stack);
		return [type, message, inspect(error)];
	};
	const sendException = (error, details) => {
		let parts;
		try {
			parts = guarded(() => describe(error));
		} catch {
			parts = ["Error", "", "an exception that can't be shown"];
		}
		if (parts[0] === "SyntaxError" && details)
			parts[2] += `\n    at line ${details.lineNumber + 1}, column ${details.columnNumber + 1} of the cell`;
		process.stderr.write(`${parts[2]}\n`);
		const limits = [256, MESSAGE_MAX, TRACEBACK_MAX];
		const data = parts.map((part, i) => toBytes(part, limits[i]));
		send("X", Buffer.concat([data[0], Buffer.from([0]), data[1], Buffer.from([0]), data[2]]));
	};

	const sendExit = () => {
		send("X", Buffer.from(`Exit\0${exitStatus}\0`));
		return exitStatus;
	};

	const writeFile = ({ data, mode }) => {
		const end = data.indexOf(0), name = data.toString("utf8", 0, end);
		fs.mkdirSync(path.dirname(name), { recursive: true });
		fs.writeFileSync(name, data.subarray(end + 1));
		fs.chmodSync(name, mode);
	};

	// Returns the exit status of the cell.
	const execute = async (number, code, parts) => {
		exitStatus = null;
		try {
			parts.files.forEach(writeFile);
			if (parts.input || hasInput) openInput(parts.input);
			hasInput = parts.input !== undefined;
			const { isThrown, value, answer } = await evaluate(number, code);
			if (exitStatus !== null) return sendExit();
			if (isThrown) {
				sendException(value, answer.exceptionDetails);
				return 1;
			}
			if (value !== undefined) {
				const isPlain = typeof value !== "object" && typeof value !== "function";
				const show = () => (isPlain || showRich(value), inspect(value));
				const text = isPlain ? show() : guarded(show);
				send("V", toBytes(text, VALUE_MAX));
			}
			return exitStatus !== null ? sendExit() : 0;
		} catch (error) {
			if (exitStatus !== null) return sendExit();
			sendException(error);
			return 1;
		}
	};

	const runCell = async (number, code, parts) => {
		displays = { count: 0, size: 0, dropped: 0 };
		process.argv.splice(1, Infinity, "", ...parts.args);
		const status = await execute(number, code, parts);
		const end = Buffer.alloc(6);
		end.writeUInt32LE(number, 0);
		end[4] = status;
		end[5] = Math.min(displays.dropped, 255);
		send("E", end);
	};

	let hasInput = false;
	let parts = { args: [], files: [] };
	const takeFrame = async (kind, data) => {
		if (kind === "a") parts.args.push(data.toString());
		if (kind === "f") parts.files.push({ data: Buffer.from(data), mode: 0o644 });
		if (kind === "F") parts.files.push({ data: Buffer.from(data), mode: 0o755 });
		if (kind === "i") parts.input = Buffer.from(data);
		if (kind !== "c") return;
		const mine = parts;
		parts = { args: [], files: [] };
		await runCell(data.readUInt32LE(0), data.toString("utf8", 4), mine);
	};

	// Frames are taken one after the other: one cell at a time.
	let buffer = Buffer.alloc(0), isBusy = false;
	const takeFrames = async () => {
		if (isBusy) return;
		isBusy = true;
		while (buffer.length >= 5 && buffer.length >= 5 + buffer.readUInt32LE(1)) {
			const size = buffer.readUInt32LE(1);
			const kind = buffer.toString("latin1", 0, 1), data = buffer.subarray(5, 5 + size);
			buffer = buffer.subarray(5 + size);
			await takeFrame(kind, data);
		}
		isBusy = false;
	};

	// --- the start -----------------------------------------------------------------------

	// What an uncaught error of a timer does in Node's own REPL: it is shown, and the process stays.
	process.on("uncaughtException", (error) => {
		if (error?.[EXITED]) return;
		process.stderr.write(`Uncaught ${inspect(error)}\n`);
	});

	for (const name of process.argv.slice(1)) {
		try {
			require(name);
		} catch (error) {
			if (error.code !== "MODULE_NOT_FOUND") throw error; // an older Node
		}
	}
	[process.stdout, process.stderr].forEach(writeDirectly);
	for (const name of ["module", "exports", "__filename", "__dirname"]) delete globalThis[name];
	delete process._eval;
	process.execArgv.splice(process.execArgv.indexOf("-e"), 2);
	globalThis.require = Module.createRequire(path.join(process.cwd(), "cell.js"));
	Object.defineProperty(globalThis, "display", { value: display, writable: true, configurable: true });
	setImmediate(() => delete globalThis.module); // which -e puts back at its end
	learnTakenId();

	const input = new (require("net").Socket)({ fd: CHANNEL, readable: true, writable: false });
	input.on("data", (data) => {
		buffer = buffer.length > 0 ? Buffer.concat([buffer, data]) : data;
		takeFrames();
	});
	input.on("end", () => process.reallyExit(0));
	input.on("error", () => process.reallyExit(1));
	send("R");
}
