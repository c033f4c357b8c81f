// SPDX-License-Identifier: Apache-2.0
// Times a tool of a server, called by the official client and by a program of run_node:
// tool_calls.mjs PACKAGES SERVERS ROUNDS CEJAIL ARGUMENT...
//
// SERVERS is servers.json, and its server "everything" has the tool "echo".  Each round makes as many calls in both
// ways.  Prints {"direct": [...], "inside": [...]}: the nanoseconds of each call.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const CALLS = 50; // what calls.max allows
const [packages, servers, rounds, command, ...args] = process.argv.slice(2);
const require = createRequire(packages + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

async function connect(server) {
	const client = new Client({ name: "bench", version: "1" });
	await client.connect(new StdioClientTransport({ ...server, stderr: "ignore" }));
	return client;
}

const code = `import("./tools.mjs").then(async ({ everything }) => {
	const took = [];
	for (let i = 0; i < ${CALLS}; i++) {
		const began = process.hrtime.bigint();
		await everything.echo({ message: "hello" });
		took.push(Number(process.hrtime.bigint() - began));
	}
	console.log(JSON.stringify(took));
});`;
const { command: program, args: words } = JSON.parse(readFileSync(servers, "utf8")).mcpServers.everything;
const near = await connect({ command: program, args: words });
const far = await connect({ command, args });
const seen = { direct: [], inside: [] };
for (let round = -1; round < Number(rounds); round++) {
	const direct = [];
	for (let i = 0; i < CALLS; i++) {
		const began = process.hrtime.bigint();
		await near.callTool({ name: "echo", arguments: { message: "hello" } });
		direct.push(Number(process.hrtime.bigint() - began));
	}
	const { structuredContent: facts } = await far.callTool({ name: "run_node", arguments: { code } });
	if (facts?.exit_code !== 0) throw new Error(`the program failed: ${JSON.stringify(facts)}`);
	if (round < 0) continue; // to warm up
	seen.direct.push(...direct);
	seen.inside.push(...JSON.parse(facts.stdout));
}
await near.close();
await far.close();
console.log(JSON.stringify(seen));
