"""Makes a payment, refunds a part of it, and makes a batch. Usage: pay.py KEY

Needs ONCEPAY_API_URL and ONCEPAY_API_KEY. Exit status: 0 all succeeded, 1 something did not, 2 wrongly called.
"""

import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

UNSETTLED = {"received", "processing", "waiting", "unknown"}


class Refused(Exception):
    """The API said no; repeating the request would not change that."""


class NoAnswer(Exception):
    """The outcome is unknown, not failed: try again later under the same key."""


def send(method, path, key=None, body=None):
    """Sends one request once; returns the status, the headers and the body of whatever answer comes."""
    headers = {"Authorization": "Bearer " + os.environ["ONCEPAY_API_KEY"]}
    data = None
    if key is not None:
        data = json.dumps(body).encode()
        headers.update({"Content-Type": "application/json", "Idempotency-Key": key, "Prefer": "wait=10"})
    call = urllib.request.Request(os.environ["ONCEPAY_API_URL"] + path, data, headers, method=method)
    try:
        answer = urllib.request.urlopen(call, timeout=30)
    except urllib.error.HTTPError as refusal:
        answer = refusal
    with answer:
        return answer.status, answer.headers, answer.read()


def request(method, path, key=None, body=None, attempts=8):
    """Sends one request, repeated under the same key until it is answered; returns the answer's JSON."""
    for attempt in range(attempts):
        retry_after = "0"
        try:
            status, headers, text = send(method, path, key, body)
            if status < 300:
                return json.loads(text)
            if status != 429 and status < 500:
                raise Refused(text.decode(errors="replace"))
            last = f"status {status}"
            retry_after = headers.get("Retry-After", "0")
        except (OSError, http.client.HTTPException) as error:
            last = repr(error)  # whether it arrived is unknown: the key makes a repeat safe
        if attempt + 1 < attempts:
            asked = int(retry_after) if retry_after.isdigit() else 0
            time.sleep(max(asked, random.uniform(0.5, 1) * min(15, 2**attempt)))
    raise NoAnswer(f"no answer after {attempts} attempts (last: {last})")


def pay(key, amount, currency, payment_method, patience=60):
    """Pays once, however often it is called with the key; returns the payment once it is settled or waits for somebody else."""
    payment = request("POST", "/v1/payments", key, {"amount": amount, "currency": currency, "payment_method": payment_method})
    return follow(payment, "/v1/payments", patience)


def refund(key, payment_id, amount, patience=60):
    """Gives a part of a payment back once, however often it is called with the key: its own, since a payment may have several refunds."""
    accepted = request("POST", f"/v1/payments/{payment_id}/refunds", key, {"amount": amount, "reason": "requested_by_customer"})
    return follow(accepted, "/v1/refunds", patience)


def follow(document, path, patience):
    """Reads a payment or a refund until it is settled or waits for somebody else."""
    deadline = time.monotonic() + patience
    while document["status"] in UNSETTLED:
        if time.monotonic() > deadline:
            raise NoAnswer(f"{document['id']} is stored and still {document['status']}; read it later")
        time.sleep(1)
        document = request("GET", f"{path}/{document['id']}")
    return document


def pay_batch(key, payments, patience=60):
    """Submits 1 to 100 payments under one key; returns the batch once every one of them has its outcome."""
    accepted = request("POST", "/v1/batches", key, {"payments": payments})
    deadline = time.monotonic() + patience
    while True:
        batch = request("GET", f"/v1/batches/{accepted['id']}")
        if batch["complete"]:
            return batch
        if time.monotonic() > deadline:
            raise NoAnswer(f"{batch['id']} is stored and not complete yet; read it later")
        time.sleep(1)


def main():
    if len(sys.argv) != 2 or not os.environ.get("ONCEPAY_API_URL") or not os.environ.get("ONCEPAY_API_KEY"):
        print("usage: ONCEPAY_API_URL=http://... ONCEPAY_API_KEY=opk_... pay.py KEY", file=sys.stderr)
        return 2
    key = sys.argv[1]
    try:
        payment = pay(key, 9900, "usd", "pm_card_visa")
        payment = request("GET", f"/v1/payments/{payment['id']}")
        print(f"payment {payment['id']}: {payment['status']}")
        if payment["status"] != "succeeded":
            return 1
        back = refund(key + "-refund", payment["id"], 2500)
        print(f"refund {back['id']}: {back['status']}")
        if back["status"] != "succeeded":
            return 1
        batch = pay_batch(key + "-batch", [
            {"amount": amount, "currency": currency, "payment_method": "pm_card_visa"}
            for amount, currency in [(1000, "usd"), (2000, "eur"), (3000, "usd")]
        ])
        print(f"batch {batch['id']}: complete")
        return 0 if batch["by_status"].get("succeeded", {}).get("count") == batch["count"] else 1
    except (Refused, NoAnswer) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
