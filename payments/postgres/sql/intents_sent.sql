-- The bounds say nothing new. A plan that was made while the table was small would read all of the lane, what is deleted and not yet vacuumed as well,
-- and look for each id there.
DELETE FROM outbox_intents WHERE lane = $1::int2 AND id = ANY($2::bigint[]) AND id BETWEEN $3::bigint AND $4::bigint
