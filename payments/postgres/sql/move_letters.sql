UPDATE dead_letters d SET state = u.state, replays = d.replays + u.replays
FROM unnest($1::text[], $2::text[], $3::int[]) AS u(id, state, replays) WHERE d.id = u.id
