// SPDX-License-Identifier: Apache-2.0
// Has programs of `cejail mcp --tools-from` call tools: tools.mjs SDK CEJAIL ARGUMENT...
//
// SDK is 1 or 2.  CODES is [[TOOL, CODE], ...]: each is one call of a model.  Prints one JSON object.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.CEJAIL_MCP_CLIENTS + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const [sdk, command, ...args] = process.argv.slice(2);
const names = sdk === "1"
	? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js"]
	: ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"];
const { Client } = await load(names[0]);
const { StdioClientTransport } = await load(names[1]);

const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args: ["mcp", ...args] }));
const { tools } = await client.listTools();
const results = [];
for (const [name, code] of JSON.parse(process.env.CODES))
	results.push((await client.callTool({ name, arguments: { code } })).structuredContent);
await client.close();
console.log(JSON.stringify({ tools, results }));
