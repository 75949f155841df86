SELECT count(*) FROM queue
