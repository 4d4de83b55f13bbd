import Redlock from "redlock";
import { clients } from "./clients";

const TTL_MS = 5_000;
const redlock = new Redlock(clients);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export async function drain() {
  const lock = await redlock.acquire(["drain"], TTL_MS);
  try {
    await sleep(20_000);  // expect: A-LEASE-4 lease
  } finally {
    await lock.release();
  }
}
