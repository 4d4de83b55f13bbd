import { Mutex } from "async-mutex";
import { createClient } from "redis";

const client = createClient();
const mutex = new Mutex();

export async function count(): Promise<number> {
  const release = await mutex.acquire();
  const n = await client.incr("count");
  release();
  await client.set("last", String(n), { NX: true });
  return n;
}
