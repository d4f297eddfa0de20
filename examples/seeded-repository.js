// A repository goes into a sandbox without its secrets, an agent works on it, and what it has changed comes back.
//
//     node examples/seeded-repository.js [folder]            # without one: a small project that is made for it
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { Workspace } from "cloudsandbox/workspace";

const made = process.argv[2] ? undefined : mkdtempSync(path.join(tmpdir(), "seeded-repository-"));
const folder = process.argv[2] ?? made;
if (made) {
  writeFileSync(path.join(made, "greet.sh"), "#!/bin/sh\necho helo\n", { mode: 0o755 });
  writeFileSync(path.join(made, ".env"), "API_TOKEN=not-for-the-model\n");
  writeFileSync(path.join(made, ".env.example"), "API_TOKEN=\n");
}

const workspace = new Workspace({
  backend: "local", // "docker", "e2b", ... with their backendOptions
  backendOptions: { isolation: "none" },
  seedFrom: folder,
  seedExcludes: ["dist/", "!.env.example"],
  sync: { down: true },
  onSeedProgress: ({ files, totalFiles, bytes, totalBytes }) => console.log(`sent ${files} of ${totalFiles} files, ${bytes} of ${totalBytes} bytes`),
});

try {
  await workspace.start();
  for (const { path: name, reason } of workspace.seedResult.skipped) console.log(`not sent: ${name}: ${reason}`);
  const guest = workspace.attach();
  const command = made ? "ls -A; sed -i s/helo/hello/ greet.sh && ./greet.sh | tee result.txt" : "ls -A | head -50";
  console.log(`\n$ ${command}\n${(await guest.shell(command)).output}`);
  const { down, error } = workspace.lastSync;
  if (error) console.log(`nothing came back: ${error.message}`);
  else console.log(`came back: ${down.files} files, ${down.bytes} bytes; ${down.unchanged} unchanged`, down.skipped);
} finally {
  await workspace.close();
  if (made) rmSync(made, { recursive: true });
}
