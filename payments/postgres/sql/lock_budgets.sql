-- Locks the budgets of accounts before any ticket or payment, in the order in which everybody does. Statements that follow see them as they are.
SELECT FROM unnest($1::text[], $2::bool[]) AS u(account, livemode)
JOIN rate_budgets b ON b.account = u.account AND b.livemode = u.livemode
ORDER BY b.account, b.livemode
FOR UPDATE OF b
