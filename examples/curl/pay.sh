#!/bin/sh
# Makes a payment, refunds a part of it, and makes a batch, with curl. Usage: pay.sh KEY
# Needs ONCEPAY_API_URL and ONCEPAY_API_KEY. Exit status: 0 all succeeded, 1 something did not, 2 wrongly called.
set -eu

if [ $# -ne 1 ] || [ -z "${ONCEPAY_API_URL:-}" ] || [ -z "${ONCEPAY_API_KEY:-}" ]; then
  echo "usage: ONCEPAY_API_URL=http://... ONCEPAY_API_KEY=opk_... pay.sh KEY" >&2
  exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# request METHOD PATH [KEY BODY] prints the answer's body. It repeats the same request, under the same key, after whatever leaves it open
# whether the request arrived (a broken connection, a time-out, 5xx) and after 429; never after another 4xx.
request() {
  attempt=1
  while :; do
    # The API key goes in by standard input: arguments can be seen by every user of the machine.
    set -- "$1" "$2" "${3:-}" "${4:-}"
    if [ -n "$3" ]; then
      status=$(printf 'Authorization: Bearer %s\n' "$ONCEPAY_API_KEY" | curl -sS -X "$1" "$ONCEPAY_API_URL$2" -H @- \
        -H "Idempotency-Key: $3" -H 'Content-Type: application/json' -H 'Prefer: wait=10' -d "$4" \
        --connect-timeout 5 --max-time 30 -D "$work/headers" -o "$work/body" -w '%{http_code}') || status=000
    else
      status=$(printf 'Authorization: Bearer %s\n' "$ONCEPAY_API_KEY" | curl -sS -X "$1" "$ONCEPAY_API_URL$2" -H @- \
        --connect-timeout 5 --max-time 30 -D "$work/headers" -o "$work/body" -w '%{http_code}') || status=000
    fi
    case $status in
    2??) cat "$work/body"; return 0 ;;
    000 | 429 | 5??) ;;
    *) echo "refused with $status: $(cat "$work/body")" >&2; return 1 ;;
    esac
    if [ "$attempt" -ge 8 ]; then
      echo "no answer after $attempt attempts (last: $status). The outcome is unknown: try again later under the same key" >&2
      return 1
    fi
    # 1, 2, 4, 8 ... seconds, at most 15, scattered a little by process; longer where the server asks for it.
    pause=$((1 << (attempt - 1)))
    [ "$pause" -le 15 ] || pause=15
    pause=$((pause + ($$ + attempt) % 3))
    asked=
    [ "$status" = 000 ] || asked=$(sed -n 's/^[Rr][Ee][Tt][Rr][Yy]-[Aa][Ff][Tt][Ee][Rr]: *\([0-9][0-9]*\).*/\1/p' "$work/headers" | tail -n 1)
    [ "${asked:-0}" -le "$pause" ] || pause=$asked
    sleep "$pause"
    attempt=$((attempt + 1))
  done
}

# text NAME prints the first text member of that name on standard input; where you have jq, use it.
text() { awk -F '"' -v name="$1" '{ for (i = 2; i < NF; i += 2) if ($i == name && $(i + 1) == ":") { print $(i + 2); exit } }'; }

# follow DOCUMENT PATH prints a payment or a refund, once it has come to an outcome or waits for somebody else.
follow() {
  document=$1
  looks=0
  while :; do
    case $(printf '%s' "$document" | text status) in
    received | processing | waiting | unknown) ;;
    *) printf '%s\n' "$document"; return 0 ;;
    esac
    looks=$((looks + 1))
    if [ "$looks" -gt 60 ]; then
      echo "it is stored and not settled yet; read it later" >&2
      return 1
    fi
    sleep 1
    document=$(request GET "$2/$(printf '%s' "$document" | text id)") || return 1
  done
}

# pay KEY AMOUNT CURRENCY PAYMENT_METHOD prints the payment, settled.
pay() {
  payment=$(request POST /v1/payments "$1" "{\"amount\":$2,\"currency\":\"$3\",\"payment_method\":\"$4\"}") || return 1
  follow "$payment" /v1/payments
}

# refund KEY PAYMENT AMOUNT prints the refund, settled. Its key is its own: a payment may have several refunds.
refund() {
  refund=$(request POST "/v1/payments/$2/refunds" "$1" "{\"amount\":$3,\"reason\":\"requested_by_customer\"}") || return 1
  follow "$refund" /v1/refunds
}

key=$1
payment=$(pay "$key" 9900 usd pm_card_visa)
id=$(printf '%s' "$payment" | text id)
status=$(request GET "/v1/payments/$id" | text status)
echo "payment $id: $status"
[ "$status" = succeeded ] || exit 1

refund=$(refund "$key-refund" "$id" 2500)
status=$(printf '%s' "$refund" | text status)
echo "refund $(printf '%s' "$refund" | text id): $status"
[ "$status" = succeeded ] || exit 1

batch=$(request POST /v1/batches "$key-batch" '{"payments":[
  {"amount":1000,"currency":"usd","payment_method":"pm_card_visa"},
  {"amount":2000,"currency":"eur","payment_method":"pm_card_visa"},
  {"amount":3000,"currency":"usd","payment_method":"pm_card_visa"}]}')
id=$(printf '%s' "$batch" | text id)
looks=0
while :; do
  state=$(request GET "/v1/batches/$id") || exit 1
  case $state in *'"complete":true'*) break ;; esac
  looks=$((looks + 1))
  if [ "$looks" -gt 60 ]; then
    echo "the batch is stored and not complete yet; read it later" >&2
    exit 1
  fi
  sleep 1
done
echo "batch $id: complete"
case $state in *'"by_status":{"succeeded":{"count":3,'*) ;; *) exit 1 ;; esac
