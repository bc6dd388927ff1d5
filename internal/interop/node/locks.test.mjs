// The lock protocol spoken by the stock NATS client for Node. Nothing here is ours: what these lines do is what a user of
// another language writes. docs/protocol.md is the specification.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { connect, credsAuthenticator, headers } from "@nats-io/transport-node";

const user = process.env.OCLOCKS_USER;
const patience = 20_000; // milliseconds
let nc;

before(async () => {
  const options = { servers: process.env.NATS_URL, inboxPrefix: `_INBOX.${user}` };
  if (process.env.NATS_CREDS) {
    options.authenticator = credsAuthenticator(await readFile(process.env.NATS_CREDS));
  }
  nc = await connect(options);
});

after(() => nc.close());

/** One request; the answer's body, and its error code from the headers (0 if it is no refusal). */
async function ask(op, body, options = {}) {
  const payload = typeof body === "string" ? body : JSON.stringify(body);
  const message = await nc.request(`locks.${op}.${user}`, payload, { timeout: patience, ...options });
  const code = Number(message.headers?.get("Nats-Service-Error-Code") ?? 0);
  return { code, text: message.headers?.get("Nats-Service-Error"), ...message.json() };
}

/** A session that lives on this connection. */
async function openSession() {
  return ask("session-open", {
    ttl: "10s", name: "interop", server: nc.info.server_id, cid: nc.info.client_id,
  });
}

/** The first message of a subscription that is wanted; the others are passed over. */
async function first(subscription, wanted) {
  for await (const message of subscription) {
    const body = message.json();
    assert.equal(body.subject, message.subject, "an event repeats its own subject");
    if (wanted(body)) {
      subscription.unsubscribe();
      return body;
    }
  }
  throw new Error("the subscription ended before the event came");
}

test("takes a lock and releases it", async () => {
  const grant = await ask("acquire", { name: "node/take", holder: "a test", ttl: "30s", data: { order: 4711 } });
  assert.equal(grant.granted, true);
  assert.match(grant.key, /^[0-9a-f]{16}$/);
  assert.ok(Number.isSafeInteger(grant.token) && grant.token > 0);
  assert.equal(grant.ttl, "30s");

  const held = await ask("query", "node/take");
  assert.equal(held.state, "held");
  assert.equal(held.holders[0].holder, "a test");
  assert.equal(held.holders[0].user, user);
  assert.deepEqual(held.holders[0].data, { order: 4711 });
  assert.ok(!("key" in held.holders[0]), "a query never tells a key");

  const released = await ask("release", { name: "node/take", key: grant.key });
  assert.equal(released.released, true);
  assert.equal(released.token, grant.token);
});

test("names may be any bytes, and options may be headers", async () => {
  const name64 = Buffer.from([0xff, 0x00, 0x7b]).toString("base64");
  const grant = await ask("acquire", { name64 });
  assert.equal(grant.granted, true);
  assert.equal(grant.name64, name64);
  assert.equal((await ask("release", { name64, key: grant.key })).released, true);

  const options = headers();
  options.set("Oclocks-Mode", "shared");
  options.set("Oclocks-Ttl", "5s");
  const shared = await ask("acquire", "node/headers", { headers: options });
  assert.equal(shared.mode, "shared");
  assert.equal(shared.ttl, "5s");
});

test("waits, and is answered the moment the lock is released", async () => {
  const grant = await ask("acquire", { name: "node/wait" });
  let answered = false;
  const waiting = ask("acquire", { name: "node/wait", wait: "15s" }).then((g) => { answered = true; return g; });
  while ((await ask("query", "node/wait")).queue.length === 0);
  assert.equal(answered, false);
  const begin = performance.now();
  await ask("release", { name: "node/wait", key: grant.key });
  const second = await waiting;
  assert.equal(second.granted, true);
  assert.ok(second.token > grant.token);
  assert.ok(performance.now() - begin < 5_000, "its wait had most of 15 s to go");
  await ask("release", { name: "node/wait", key: second.key });
});

test("is refused with the right code and headers", async () => {
  const grant = await ask("acquire", { name: "node/refused", holder: "the first" });

  const held = await ask("acquire", { name: "node/refused" });
  assert.equal(held.code, 409);
  assert.ok(held.text.length > 0, "Nats-Service-Error says it in words");
  assert.equal(held.error.code, 409);
  assert.equal(held.error.reason, "held");
  assert.equal(held.error.holder, "the first");

  const late = await ask("acquire", { name: "node/refused", wait: "50ms" });
  assert.deepEqual([late.code, late.error.reason], [408, "timeout"]);
  const wrong = await ask("release", { name: "node/refused", key: "0123456789abcdef" });
  assert.deepEqual([wrong.code, wrong.error.reason], [403, "denied"]);
  const malformed = await ask("acquire", '{"name":"node/refused",');
  assert.deepEqual([malformed.code, malformed.error.reason], [400, "bad_request"]);
  const unsupported = await ask("acquire", { name: "node/refused", colour: "red", require: ["colour"] });
  assert.deepEqual([unsupported.code, unsupported.error.reason], [400, "unsupported"]);
  const large = await ask("acquire", { name: "x".repeat(4097) });
  assert.deepEqual([large.code, large.error.reason], [413, "too_large"]);

  await ask("release", { name: "node/refused", key: grant.key });
  const again = await ask("release", { name: "node/refused", key: grant.key });
  assert.deepEqual([again.code, again.error.reason], [404, "not_held"]);
});

test("a request with an id takes effect once, and its answer is the same", async () => {
  const request = crypto.randomUUID();
  const one = await ask("acquire", { name: "node/once", request });
  const two = await ask("acquire", { name: "node/once", request });
  assert.equal(one.granted, true);
  assert.deepEqual(two, one);
  await ask("release", { name: "node/once", key: one.key });
});

test("a session: kept alive, notified, closed", async () => {
  const session = await openSession();
  assert.equal(session.user, user);
  assert.equal(session.disconnect, "event");
  const events = nc.subscribe(session.events);
  await nc.flush();

  const holding = await ask("acquire", { name: "node/session", session: session.session, request: 1, done: 1 });
  assert.equal(holding.granted, true);

  const queued = await ask("acquire", {
    name: "node/session", session: session.session, request: 2, done: 2, enqueue: true, wait: "15s",
  });
  assert.equal(queued.queued, true);
  assert.ok(queued.ticket > holding.ticket);

  const kept = await ask("keep", { session: session.session, beat: 1 });
  assert.equal(kept.beat, 1);
  assert.equal(kept.count, 1, "one lock is held");
  assert.match(kept.hash, /^[0-9a-f]{16}$/);

  await ask("release", { name: "node/session", key: holding.key, session: session.session, request: 3, done: 3 });
  const event = await first(events, (e) => e.type === "granted");
  assert.equal(event.grant.name, "node/session");
  assert.ok(event.grant.token > holding.token);

  const closed = await ask("session-close", { session: session.session });
  assert.equal(closed.released, 1);
  assert.equal((await ask("query", "node/session")).state, "free");
  const gone = await ask("acquire", { name: "node/session", session: session.session, request: 4, done: 4 });
  assert.deepEqual([gone.code, gone.error.reason], [410, "session"]);
});

test("a cached lock is recalled when somebody waits", async () => {
  const session = await openSession();
  const events = nc.subscribe(session.events);
  await nc.flush();
  const grant = await ask("acquire", { name: "node/recall", session: session.session, request: 1, done: 1, recall: true });
  const waiting = ask("acquire", { name: "node/recall", wait: "15s" });
  const recall = await first(events, (e) => e.type === "recall");
  assert.equal(recall.name, "node/recall");
  await ask("release", { name: "node/recall", key: grant.key, session: session.session, request: 2, done: 2 });
  const next = await waiting;
  assert.equal(next.granted, true);
  await ask("release", { name: "node/recall", key: next.key });
  await ask("session-close", { session: session.session });
});

test("lock events are published where the zone has them switched on", async () => {
  const events = nc.subscribe("locks.event.lock.>");
  await nc.flush();
  const granted = first(events, (e) => e.name === "node/events" && e.type.endsWith("granted"));
  const grant = await ask("acquire", { name: "node/events" });
  const event = await granted;
  assert.equal(event.token, grant.token);
  assert.ok(!("key" in event), "an event never tells a key");
  await ask("release", { name: "node/events", key: grant.key });
});
