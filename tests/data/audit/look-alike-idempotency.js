const Redis = require("ioredis");
const redis = new Redis();

class Deduplicator {
  async begin(id) {
    return (await redis.set(`done:${id}`, "1", "EX", 3600, "NX")) === "OK";
  }

  async forget(id) {
    await redis.del(`done:${id}`); // no lock: on purpose, it is to run again
  }
}

module.exports = { Deduplicator };
