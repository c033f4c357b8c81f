// SPDX-License-Identifier: Apache-2.0
// A client of the service over its Unix socket, with Node's library alone:
//
//	cejail serve &
//	node tools/examples/service.js [SOCKET]
//
// Without SOCKET it calls your own service, else the system's.
"use strict";
const fs = require("fs");
const http = require("http");

// One run; resolves with its result.  Destroying the request cancels the run.
function run(socketPath, request) {
  return new Promise((resolve, reject) => {
    const call = http.request({ socketPath, method: "POST", path: "/v1/runs" }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part) => { text += part; });
      response.on("error", reject);
      response.on("end", () => {
        const answer = JSON.parse(text);
        if (response.statusCode === 200) resolve(answer);
        else reject(new Error(`${answer.error.code}: ${answer.error.message}`));
      });
    });
    call.on("error", reject);
    call.end(JSON.stringify(request));
  });
}

function defaultSocket() {
  const own = `${process.env.XDG_RUNTIME_DIR || `/run/user/${process.getuid()}`}/cejail/api.sock`;
  return fs.existsSync(own) ? own : "/run/cejail/api.sock";
}

async function main() {
  const socketPath = process.argv[2] || defaultSocket();
  const good = await run(socketPath, { profile: "python", network: "none", timeout: "5s", code: "print(6 * 7)" });
  console.log(good.status, good.stdout.text.trim());

  const endless = await run(socketPath, { profile: "python", network: "none", timeout: "1s", code: "while True: pass" });
  console.log(endless.status);

  // An error of the request has a code; the program was not run.
  await run(socketPath, { profile: "no-such-profile", code: "1" }).catch((problem) => console.log(problem.message));
}

main().catch((problem) => {
  console.error(problem.message);
  process.exit(1);
});
