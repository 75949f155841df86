package devstack

import "github.com/oncepay/oncepay/deploy/guard"

// watchScript reads lines until the parent's end of the pipe closes:
//
//	temp PATH   remove PATH at the end
//	init PID    an initdb runs, as leader of its process group
//	run PID     a postmaster runs
//	done        it has ended
//
// then stops what still runs and removes the temporary directories. $1 is the
// signal that stops a postmaster: INT (orderly) or QUIT (at once). It ignores
// the terminal's signals, since it has to outlive the parent. "kill -s" is the one
// form that every shell takes together with "--" and a process group.
const watchScript = `
trap '' HUP INT QUIT TERM
stop=$1; shift
what= pid=
while read -r word rest; do
  case $word in
  temp) set -- "$@" "$rest" ;;
  init|run) what=$word pid=$rest ;;
  done) what= ;;
  esac
done
alive() {
  kill -0 "$pid" 2>/dev/null || return 1
  if [ -r "/proc/$pid/stat" ] && read -r _ _ state _ <"/proc/$pid/stat"; then
    [ "$state" != Z ] || return 1
  fi
}
await() {
  n=0
  while alive; do
    [ $n -lt "$1" ] || return 1
    n=$((n+1))
    sleep 0.1
  done
}
case $what in
init) kill -s KILL -- "-$pid" 2>/dev/null ;;
run)
  kill -s "$stop" "$pid" 2>/dev/null
  await 50 || { kill -s QUIT "$pid" 2>/dev/null; await 30; } || { kill -s KILL "$pid" 2>/dev/null; await 10; }
  ;;
esac
n=0
while [ $# -gt 0 ] && [ $n -lt 20 ]; do
  rm -rf -- "$@" 2>/dev/null && break
  n=$((n+1))
  sleep 0.1
done
`

// reportScript tells the watcher (fd 3) its own process id before it becomes the
// program, so that no moment exists in which a child runs unwatched.
const reportScript = `echo "$0 $$" >&3; exec "$@" 3>&-`

// watcher outlives the parent by just as long as it takes to clean up after it.
type watcher struct{ *guard.Guard }

// startWatcher starts a watcher that stops postmasters with stop ("INT", "QUIT").
func startWatcher(stop string) (*watcher, error) {
	g, err := guard.Start("oncepay-watcher", watchScript, stop)
	if err != nil {
		return nil, err
	}
	return &watcher{g}, nil
}
