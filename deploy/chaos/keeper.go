package chaos

import (
	"os"

	"github.com/oncepay/oncepay/deploy/guard"
)

// keeperScript reads lines until the parent's end of the pipe closes:
//
//	temp PATH   remove PATH at the end
//	stopped PID PID is stopped and cannot see our end
//	going PID   it goes on
//
// then kills what is stopped, and removes the temporary directories once whatever wrote into them has ended too.
const keeperScript = `
trap '' HUP INT QUIT TERM
stopped=' '
while read -r word rest; do
  case $word in
  temp) set -- "$@" "$rest" ;;
  stopped) stopped="$stopped$rest " ;;
  going) stopped="${stopped%% $rest *} ${stopped#* $rest }" ;;
  esac
done
for pid in $stopped; do kill -s KILL "$pid" 2>/dev/null; done
n=0
while [ $# -gt 0 ] && [ $n -lt 50 ]; do
  rm -rf -- "$@" 2>/dev/null && break
  n=$((n+1))
  sleep 0.1
done
`

// Keeper outlives this process by as long as it takes to clean up after it. Its methods may be called from any goroutine.
type Keeper struct{ guard *guard.Guard }

// NewKeeper starts a keeper.
func NewKeeper() (*Keeper, error) {
	g, err := guard.Start("oncepay-keeper", keeperScript)
	if err != nil {
		return nil, err
	}
	return &Keeper{g}, nil
}

// TempDir makes a directory that is gone when the keeper is.
func (k *Keeper) TempDir(prefix string) (string, error) { return k.guard.TempDir(os.TempDir(), prefix) }

// Close ends the keeper and waits for it: temporary directories are gone then. It may be called again.
func (k *Keeper) Close() error { return k.guard.Close() }
