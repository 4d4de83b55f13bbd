import Redlock from "redlock";
import { clients, db } from "./clients";

const redlock = new Redlock(clients);

export async function pay(order: string) {
  await redlock.using([`order:${order}`], 30_000, async () => {
    // expect on line 9: A-FENCE-1 fencing
    await db.query("UPDATE orders SET paid = true WHERE id = $1", [order]);
  });
}
