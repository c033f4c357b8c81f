// SPDX-License-Identifier: Apache-2.0
// A back end for code mode, as code-executor servers have it: a model's program calls functions of this process with
// callMCPTool(), from a jail without network.
//
//	node tools/examples/code_mode.mjs
//
// The model writes one program in place of many tool calls, and reads only what the program prints.  See cejail-tools(7).
import { Client } from "../clients/node/cejail.mjs";

const BRIDGE = 'import { call as callMCPTool } from "./tools.mjs";';

export class CodeMode {
  /** tools: the functions of each server.  allowed: those that a program may call; nothing else can be reached. */
  constructor(tools, { client = new Client(), ...limits } = {}) {
    this.tools = tools;
    this.client = client;
    this.limits = { profile: "node", file_name: "main.mjs", network: "none", timeout: "30s", ...limits };
  }

  /** What the model reads. */
  async execute(code, allowed) {
    const tools = Object.fromEntries(allowed.map((name) => [name, this.tools[name]]));
    const result = await this.client.run({ code: `${BRIDGE} ${code}`, tools, ...this.limits });
    for (const { name, count, failed, refused } of result.calls)
      console.error(`audit: ${result.id}: ${name}: ${count} calls, ${failed} failed, ${refused} refused`);
    return result.stdout + result.stderr + (result.status === "exited" ? "" : `[the program ended with the status '${result.status}']\n`);
  }
}

const files = new Map([["a.txt", "one"], ["b.txt", "two"]]);
const TOOLS = {
  mcp__files__list: { description: "The names of the files.", handler: () => [...files.keys()] },
  mcp__files__read: {
    description: "The text of a file.",
    inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    handler({ name }) {
      if (!files.has(name)) throw new Error(`there is no file '${name}'`);
      return files.get(name);
    },
  },
  mcp__files__remove: { description: "Removes a file.", handler: ({ name }) => files.delete(name) },
};
const PROGRAM = `
const names = await callMCPTool("mcp__files__list", {});
const texts = await Promise.all(names.map((name) => callMCPTool("mcp__files__read", { name })));
console.log(texts.join(" "));
for (const name of ["mcp__files__read", "mcp__files__remove"])
  await callMCPTool(name, { name: "c.txt" }).catch((problem) => console.log("failed:", problem.message));
`;

const backend = new CodeMode(TOOLS);
process.stdout.write(await backend.execute(PROGRAM, ["mcp__files__list", "mcp__files__read"]));
