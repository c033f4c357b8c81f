// SPDX-License-Identifier: Apache-2.0
// Calls the official example servers through `cejail mcp wrap`: wrap.mjs SDK CEJAIL OPTIONS
//
// SDK is 1 or 2; OPTIONS is a JSON array.  Prints one JSON object.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.CEJAIL_MCP_CLIENTS + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const [sdk, command, options] = process.argv.slice(2);
const names = sdk === "1"
	? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js"]
	: ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"];
const { Client } = await load(names[0]);
const { StdioClientTransport } = await load(names[1]);

async function connect(server, ...args) {
	const client = new Client({ name: "test", version: "1" });
	const program = `/srv/node_modules/@modelcontextprotocol/${server}/dist/index.js`;
	await client.connect(new StdioClientTransport({ command, args: ["mcp", "wrap", ...JSON.parse(options), "--", "node", program, ...args] }));
	return client;
}

const call = (client, name, args) => client.callTool({ name, arguments: args });
const seen = {};

const everything = await connect("server-everything");
seen.echo = (await call(everything, "echo", { message: "hello" })).content[0].text;
await everything.close();

const files = await connect("server-filesystem", "/data");
seen.read = (await call(files, "read_text_file", { path: "/data/hello.txt" })).content[0].text;
seen.outside = (await call(files, "read_text_file", { path: "/etc/passwd" })).content[0].text;
seen.write = (await call(files, "write_file", { path: "/data/new.txt", content: "x" })).isError;
await files.close();
console.log(JSON.stringify(seen));
