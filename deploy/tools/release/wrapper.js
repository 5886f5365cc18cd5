#!/usr/bin/env node
"use strict";
// Starts the program that the package for this platform holds.
const { spawn } = require("node:child_process");
const platform = require("../package.json").name + "-" + process.platform + "-" + process.arch;
const file = process.platform === "win32" ? "palimpsest.exe" : "palimpsest";

let program;
try {
  program = require.resolve(platform + "/bin/" + file);
} catch {
  console.error(
    `palimpsest: the package ${platform} is missing. Install again without --omit=optional. ` +
      "If there is no such package, Palimpsest was not built for this platform.",
  );
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`palimpsest: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    return;
  }
  process.exit(code);
});
