-- Waits for everybody who has locked a ticket, to record an outcome or to see that there is none: whoever comes later sees what has been named.
LOCK TABLE queue IN EXCLUSIVE MODE
