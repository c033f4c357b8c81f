// SPDX-License-Identifier: Apache-2.0
// Has a program of `cejail mcp --tools-from` call two tools: tools.mjs SDK CEJAIL ARGUMENT...
//
// SDK is 1 or 2.  Prints one JSON object.
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
const { description } = (await client.listTools()).tools.find((tool) => tool.name === "run_node");
const code = `import("./tools.mjs").then(async ({ everything, call }) => {
	const sum = await call("everything.get-sum", { a: 1, b: 2 });
	console.log(await everything.echo({ message: "hello" }), sum.match(/3/)[0]);
});`;
const { structuredContent } = await client.callTool({ name: "run_node", arguments: { code } });
await client.close();
console.log(JSON.stringify({ description, result: structuredContent }));
