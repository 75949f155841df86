SELECT {replay} FROM replays r, {replay counts} WHERE r.id = $1
