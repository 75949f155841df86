SELECT {rewind} FROM rewinds r WHERE r.state = 'running'
