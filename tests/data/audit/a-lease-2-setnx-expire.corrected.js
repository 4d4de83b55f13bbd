const redis = require("redis").createClient();
const { v4: uuid } = require("uuid");

const RELEASE =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end";

async function exportAll() {
  const token = uuid();
  if (await redis.set("lock:export", token, { NX: true, EX: 60 })) {
    try {
      await dump();
    } finally {
      await redis.eval(RELEASE, { keys: ["lock:export"], arguments: [token] });
    }
  }
}
