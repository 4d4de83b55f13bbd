const redis = require("redis").createClient();
const { v4: uuid } = require("uuid");

const RELEASE =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end";

async function exportAll() {
  const token = uuid();
  if (await redis.setNX("lock:export", token)) {  // expect: A-LEASE-2 lease
    await redis.expire("lock:export", 60);
    try {
      await dump();
    } finally {
      await redis.eval(RELEASE, { keys: ["lock:export"], arguments: [token] });
    }
  }
}
