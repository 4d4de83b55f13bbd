import Redlock from "redlock";
import { clients } from "./clients";

const redlock = new Redlock(clients, { retryCount: 10 });

export async function bill(order: string) {
  const lock = await redlock.acquire([`bill:${order}`], 30_000);
  try {
    await charge(order);
  } finally {
    await lock.release();
  }
}
