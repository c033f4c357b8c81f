// SPDX-License-Identifier: Apache-2.0
// A Node.js that waits in a sealed jail for its one program: node ... -e LINE [MODULE...]
// LINE reads this text from descriptor 3 and runs it: plan_launcher.c.
// On descriptor 3 it then says with a byte that it is ready, then reads to the end of file: "1" if the
// program has an input, "1" if it has tools to call, the file to run, its arguments, each with a NUL
// behind it.  The program then runs as if `node ... FILE ARG...` had just started, below one frame of Node's own timers.
{
	const fs = require("fs");
	const Module = require("module");
	const LINK = 3;
	const CALLS = 4; // calls.h

	// What -e puts into the global scope and a file does not find there.
	const forgetEval = () => {
		for (const name of ["module", "exports", "require", "__filename", "__dirname"])
			delete globalThis[name];
		for (const name of Module.builtinModules) {
			const own = Object.getOwnPropertyDescriptor(globalThis, name);
			if (own?.get && !own.enumerable && name !== "process") delete globalThis[name];
		}
		delete process._eval;
		process.execArgv.splice(process.execArgv.indexOf("-e"), 2);
	};

	const readWords = () => {
		const parts = [];
		const part = Buffer.alloc(65536);
		for (let size; (size = fs.readSync(LINK, part)) > 0; )
			parts.push(Buffer.from(part.subarray(0, size)));
		fs.closeSync(LINK);
		return Buffer.concat(parts).toString().split("\0").slice(0, -1);
	};

	// The lowest free descriptor is what open(2) returns: standard input's.
	const closeInput = () => {
		fs.closeSync(0);
		fs.openSync("/dev/null", "r");
	};

	for (const name of process.argv.slice(1)) {
		try {
			require(name);
		} catch (error) {
			if (error.code !== "MODULE_NOT_FOUND") throw error; // an older Node
		}
	}
	process.stdout, process.stderr; // made when they are first asked for
	forgetEval();
	fs.writeSync(LINK, ".");

	const [hasInput, hasTools, ...argv] = readWords();
	if (hasTools === "1") process.env.CEJAIL_CALLS_FD = String(CALLS);
	else fs.closeSync(CALLS);
	if (hasInput !== "1") closeInput();
	process.argv.splice(1, Infinity, ...argv);
	setImmediate(() => delete globalThis.module); // which -e puts back at its end
	setImmediate(Module.runMain.bind(Module, argv[0]));
}
