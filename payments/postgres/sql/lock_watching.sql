-- Whoever looks for results waits for who does so at this moment, and then sees what came of it: of two dead letters of one payment one succeeds.
SELECT pg_advisory_xact_lock(hashtextextended('oncepay.watch_replays.' || current_schema(), 0))
