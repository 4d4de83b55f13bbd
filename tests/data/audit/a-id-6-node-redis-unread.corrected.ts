import { createClient } from "redis";
import { randomUUID } from "node:crypto";

const client = createClient();
const RELEASE =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end";

export async function report(day: string): Promise<void> {
  const token = randomUUID();
  const taken = await client.set("lock:report", token, { NX: true, PX: 30_000 });
  if (taken === null) throw new Error("busy");
  try {
    await write(day);
  } finally {
    await client.eval(RELEASE, { keys: ["lock:report"], arguments: [token] });
  }
}
