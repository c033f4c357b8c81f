// SPDX-License-Identifier: Apache-2.0
// The conformance suite imports fs.globSync, which Node.js has since version 22.  Its test of servers
// does not call it: node --import old_node.mjs SUITE
import fs from "node:fs";
import { register } from "node:module";

const patched = 'export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];';
const hook = `export const resolve = (name, context, next) =>
	name === "fs" && context.parentURL?.includes("/conformance/")
		? { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(patched)}`)}, format: "module", shortCircuit: true }
		: next(name, context);`;
if (!fs.globSync)
	register(`data:text/javascript,${encodeURIComponent(hook)}`, import.meta.url);
