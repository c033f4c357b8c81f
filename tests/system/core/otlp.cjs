// SPDX-License-Identifier: Apache-2.0
// Reads the lines of a trace file with OpenTelemetry's own definitions: node otlp.cjs PACKAGES FILE
//
// Each line becomes a message of the protocol's protobuf definitions, then bytes, and then an object again, which must
// be the line: a member with another name, type or unit would be lost or refused.  Prints the names of the spans.
const assert = require("node:assert");
const fs = require("node:fs");

const [packages, file] = process.argv.slice(2);
const { opentelemetry } = require(`${packages}/node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js`);
const Request = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const IDS = new Set(["traceId", "spanId", "parentSpanId"]);

// Ids are hexadecimal in OTLP's JSON and bytes in a message; of an empty list a message keeps nothing.
const change = (value, id) => {
  if (Array.isArray(value)) return value.map((one) => change(one, id));
  if (typeof value !== "object") return value;
  const members = Object.entries(value).filter(([, one]) => !Array.isArray(one) || one.length > 0);
  return Object.fromEntries(members.map(([key, one]) => [key, IDS.has(key) ? id(one) : change(one, id)]));
};

for (const line of fs.readFileSync(file, "utf8").trimEnd().split("\n")) {
  const value = JSON.parse(line);
  const message = Request.fromObject(change(value, (hex) => Buffer.from(hex, "hex")));
  assert.strictEqual(Request.verify(message), null);
  const read = Request.toObject(Request.decode(Request.encode(message).finish()), { longs: String, bytes: Array });
  assert.deepStrictEqual(change(read, (bytes) => Buffer.from(bytes).toString("hex")), change(value, (hex) => hex));
  for (const { spans } of value.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans)) console.log(spans.map(({ name }) => name).join());
}
