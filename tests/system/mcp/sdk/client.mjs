// SPDX-License-Identifier: Apache-2.0
// Drives `cejail mcp` with an official client: client.mjs SDK MODE CEJAIL ARGUMENT...
// Or POST /mcp of a service, with a token: client.mjs SDK MODE URL TOKEN
//
// SDK is 1 or 2.  MODE is legacy, auto or a version to insist on; SDK 1 knows the legacy era only.
// Prints one JSON object.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.CEJAIL_MCP_CLIENTS + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const [sdk, mode, command, ...args] = process.argv.slice(2);
const names = sdk === "1"
	? ["index.js", "stdio.js", "streamableHttp.js"].map((name) => `@modelcontextprotocol/sdk/client/${name}`)
	: ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio", "@modelcontextprotocol/client"];
const { Client } = await load(names[0]);
const { StdioClientTransport } = await load(names[1]);
const { StreamableHTTPClientTransport } = await load(names[2]);

const versionNegotiation = { mode: mode === "legacy" || mode === "auto" ? mode : { pin: mode } };
const client = new Client({ name: "test", version: "1" }, { versionNegotiation });
const call = (params, options) => (sdk === "1" ? client.callTool(params, undefined, options) : client.callTool(params, options));
const run = (code, options, more) => call({ name: "run_shell", arguments: { code, ...more } }, options);
const failure = (promise) => promise.then(() => null, (error) => ({ code: error.code ?? null, text: String(error) }));

const transport = command.startsWith("http:")
	? new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers: { Authorization: `Bearer ${args[0]}` } } })
	: new StdioClientTransport({ command, args: ["mcp", ...args] });
await client.connect(transport);
const seen = { server: client.getServerVersion() };
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);

seen.progress = [];
seen.result = await run("echo one; sleep 0.3; echo two; sleep 0.3; echo x > /box/out/f.txt", { onprogress: (note) => seen.progress.push(note) });
seen.failed = await run("exit 3");
seen.refused = await run("true", undefined, { sesion: "s" });
seen.unknown = await failure(call({ name: "none", arguments: {} }));

const stop = new AbortController();
setTimeout(() => stop.abort("enough"), 500);
seen.cancelled = await failure(run("sleep 66", { signal: stop.signal }));
seen.several = (await Promise.all([1, 2, 3].map((n) => run(`sleep 0.2; echo ${n}`)))).map((done) => done.structuredContent.stdout);

await client.close();
console.log(JSON.stringify(seen));
