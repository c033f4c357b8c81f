// SPDX-License-Identifier: Apache-2.0
// A session in Node.js: files stay, a program in the background, a limit that ends one exec only.
//
//	node tools/examples/session.mjs [SOCKET]
//
// Without SOCKET: at the service of this user; cejail starts one if none listens.
import { Client } from "../clients/node/cejail.mjs";

const client = new Client(process.argv[2] ? { socket: process.argv[2] } : {});
const session = await client.session({ profile: "python", network: "none", lease: "10m" });
try {
  await session.put("numbers.txt", "3\n1\n2\n");
  await session.exec({ command: ["sort", "-n", "-o", "sorted.txt", "numbers.txt"] });
  console.log("sorted", (await session.get("sorted.txt")).toString().trim().split("\n").join(" "));
  console.log("files", (await session.list()).filter((entry) => entry.type === "file").map((entry) => entry.path).sort().join(" "));

  for await (const event of session.stream({ code: "for i in range(3): print(i, flush=True)" })) {
    if (event.type === "stdout") console.log("streamed", event.content.toString().trim().split("\n").join(" "));
  }

  const background = await session.start({ code: "import sys; print(sys.stdin.read().upper())", open_stdin: true });
  console.log("too long:", (await session.exec({ code: "while True: pass", timeout: "1s" })).status);
  await background.write("still here", { eof: true });
  console.log("background:", (await background.wait()).stdout.trim());
} finally {
  await session.end();
}
console.log("ended:", (await (await client.attach(session.id)).info()).reason);
