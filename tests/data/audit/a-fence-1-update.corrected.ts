import Redlock from "redlock";
import { clients, db } from "./clients";

const redlock = new Redlock(clients);

export async function pay(order: string, version: number) {
  await redlock.using([`order:${order}`], 30_000, async () => {
    await db.query("UPDATE orders SET paid = true WHERE id = $1 AND version = $2", [order, version]);
  });
}
