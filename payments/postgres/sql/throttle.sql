-- Stripe said 429: half the rate from now on, not below 1 a second or 1% of the setting, and at most once a second for all processes together.
-- What has come in by now is booked at the old rate.
UPDATE rate_budgets b SET tokens = {tokens}, updated_at = {tokens at}, throttled_at = clock.now,
    rate = least(clock.setting, greatest(1, clock.setting / 100, {rate} / 2))
FROM (SELECT coalesce($3::timestamptz, now()) AS now, $4::float8 AS setting) AS clock
WHERE b.account = $1 AND b.livemode = $2
    AND (b.throttled_at IS NULL OR clock.now < b.throttled_at - interval '5 s' OR clock.now >= b.throttled_at + interval '1 s')
