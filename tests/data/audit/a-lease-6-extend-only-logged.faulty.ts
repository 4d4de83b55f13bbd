import Redlock, { Lock } from "redlock";
import { clients } from "./clients";

const redlock = new Redlock(clients);

export async function lead(stopped: () => boolean, step: () => Promise<void>) {
  let lock: Lock = await redlock.acquire(["leader"], 30_000);
  try {
    while (!stopped()) {
      await step();
      try {
        lock = await lock.extend(30_000);  // expect: A-LEASE-6 lease
      } catch (error) {
        console.warn("not renewed", error);
      }
    }
  } finally {
    await lock.release();
  }
}
