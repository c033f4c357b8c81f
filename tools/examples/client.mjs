// SPDX-License-Identifier: Apache-2.0
// The client library in Node.js: values, files, streamed output and several runs at once.
//
//	node tools/examples/client.mjs [SOCKET]
//
// Over `cejail run`, or with SOCKET over a service.  In a program of your own: npm install tools/clients/node
import { Client } from "../clients/node/cejail.mjs";

const MEAN = `
import json
numbers = [float(line) for line in open("numbers.txt")]
json.dump({"mean": sum(numbers) / len(numbers)}, open("/box/out/result.json", "w"))
open("/box/out/sorted.txt", "w").write("\\n".join(str(n) for n in sorted(numbers)))
`;

const client = new Client(process.argv[2] ? { socket: process.argv[2] } : {});

const result = await client.run({ code: MEAN, files: { "numbers.txt": "3\n1\n2\n" }, artifacts: true, network: "none", timeout: "10s" });
console.log("value", JSON.stringify(result.value));
console.log("file", result.artifacts.get("sorted.txt").toString().split("\n").join(" "));

for await (const event of client.stream({ code: "for i in range(3): print(i, flush=True)", network: "none" })) {
  if (event.type === "stdout") console.log("streamed", event.content.toString().trim().split("\n").join(" "));
  if (event.type === "result") console.log("ended:", event.result.status);
}

await client.run({ code: "print('never')", memory: "64T" }).catch((problem) => console.log("refused:", problem.message));

const squares = await Promise.all([0, 1, 2, 3].map((i) => client.run({ code: `print(${i} ** 2)`, network: "none" })));
console.log("at once", squares.map((one) => one.stdout.trim()).join(" "));
