SELECT {rewind} FROM rewinds r WHERE r.id = $1
