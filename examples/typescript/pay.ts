// Makes a payment, refunds a part of it, and makes a batch. Usage: pay.ts KEY
// Needs ONCEPAY_API_URL and ONCEPAY_API_KEY. Exit status: 0 all succeeded, 1 something did not, 2 wrongly called.

import { setTimeout as sleep } from "node:timers/promises";

/** A payment or a refund. */
interface Payment { id: string; status: string }
interface Batch { id: string; count: number; complete: boolean; by_status: Record<string, { count: number }> }

/** The API said no; repeating the request would not change that. */
class Refused extends Error {}

/** The outcome is unknown, not failed: try again later under the same key. */
class NoAnswer extends Error {}

/** Sends one request, repeated under the same key until it is answered. */
async function request<T>(method: string, path: string, key?: string, body?: unknown, attempts = 8): Promise<T> {
  const headers: Record<string, string> = { Authorization: `Bearer ${process.env.ONCEPAY_API_KEY}` };
  if (key !== undefined) Object.assign(headers, { "Content-Type": "application/json", "Idempotency-Key": key, Prefer: "wait=10" });
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  let last = "";
  let retryAfter = 0; // seconds
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await sleep(Math.max(retryAfter * 1000, (0.5 + Math.random() / 2) * Math.min(15_000, 500 * 2 ** attempt)));
    retryAfter = 0;
    try {
      const answer = await fetch(process.env.ONCEPAY_API_URL + path, { ...init, signal: AbortSignal.timeout(30_000) });
      const text = await answer.text();
      if (answer.ok) return JSON.parse(text) as T;
      if (answer.status !== 429 && answer.status < 500) throw new Refused(text);
      last = `status ${answer.status}`;
      retryAfter = Number(answer.headers.get("Retry-After")) || 0;
    } catch (error) {
      if (error instanceof Refused) throw error;
      last = String(error); // whether it arrived is unknown: the key makes a repeat safe
    }
  }
  throw new NoAnswer(`no answer after ${attempts} attempts (last: ${last})`);
}

/** Pays once, however often it is called with the key; resolves once the payment is settled or waits for somebody else. */
export async function pay(key: string, amount: number, currency: string, paymentMethod: string): Promise<Payment> {
  return follow(await request<Payment>("POST", "/v1/payments", key, { amount, currency, payment_method: paymentMethod }), "/v1/payments");
}

/** Gives a part of a payment back once, however often it is called with the key: its own, since a payment may have several refunds. */
export async function refund(key: string, paymentId: string, amount: number): Promise<Payment> {
  const body = { amount, reason: "requested_by_customer" };
  return follow(await request<Payment>("POST", `/v1/payments/${paymentId}/refunds`, key, body), "/v1/refunds");
}

/** Reads a payment or a refund until it is settled or waits for somebody else. */
async function follow(document: Payment, path: string): Promise<Payment> {
  for (const deadline = Date.now() + 60_000; ["received", "processing", "waiting", "unknown"].includes(document.status); ) {
    if (Date.now() > deadline) throw new NoAnswer(`${document.id} is stored and still ${document.status}; read it later`);
    await sleep(1000);
    document = await request<Payment>("GET", `${path}/${document.id}`);
  }
  return document;
}

/** Submits 1 to 100 payments under one key; resolves once every one of them has its outcome. */
export async function payBatch(key: string, payments: object[]): Promise<Batch> {
  const { id } = await request<{ id: string }>("POST", "/v1/batches", key, { payments });
  for (const deadline = Date.now() + 60_000; ; await sleep(1000)) {
    const batch = await request<Batch>("GET", `/v1/batches/${id}`);
    if (batch.complete) return batch;
    if (Date.now() > deadline) throw new NoAnswer(`${id} is stored and not complete yet; read it later`);
  }
}

async function main(): Promise<number> {
  const [key] = process.argv.slice(2);
  if (process.argv.length !== 3 || !key || !process.env.ONCEPAY_API_URL || !process.env.ONCEPAY_API_KEY) {
    console.error("usage: ONCEPAY_API_URL=http://... ONCEPAY_API_KEY=opk_... node pay.ts KEY");
    return 2;
  }
  try {
    const { id } = await pay(key, 9900, "usd", "pm_card_visa");
    const payment = await request<Payment>("GET", `/v1/payments/${id}`);
    console.log(`payment ${payment.id}: ${payment.status}`);
    if (payment.status !== "succeeded") return 1;
    const back = await refund(`${key}-refund`, id, 2500);
    console.log(`refund ${back.id}: ${back.status}`);
    if (back.status !== "succeeded") return 1;
    const batch = await payBatch(`${key}-batch`, [
      { amount: 1000, currency: "usd", payment_method: "pm_card_visa" },
      { amount: 2000, currency: "eur", payment_method: "pm_card_visa" },
      { amount: 3000, currency: "usd", payment_method: "pm_card_visa" },
    ]);
    console.log(`batch ${batch.id}: complete`);
    return batch.by_status["succeeded"]?.count === batch.count ? 0 : 1;
  } catch (error) {
    console.error(String(error));
    return 1;
  }
}

process.exitCode = await main();
