import Redlock from "redlock";
import { clients } from "./clients.js";

const redlock = new Redlock(clients);

export async function move(item) {
  const lock = await redlock.acquire([`move:${item}`], 10_000);  // expect: A-REL-1 release_retry
  await carry(item);
  await lock.release();
}
