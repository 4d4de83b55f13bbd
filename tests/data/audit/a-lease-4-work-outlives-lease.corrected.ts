import Redlock from "redlock";
import { clients } from "./clients";

const TTL_MS = 60_000;
const redlock = new Redlock(clients);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export async function drain() {
  const lock = await redlock.acquire(["drain"], TTL_MS);
  try {
    await sleep(20_000);
  } finally {
    await lock.release();
  }
}
