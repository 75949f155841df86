#!/bin/sh
# Makes the secrets that the parts of the stack know each other by, once each, and hands the data directories to those who write them.
# It runs before everything else at each `docker compose up`, and changes nothing that is there.
#
#   prepare.sh                 make what is missing
#   prepare.sh show NAME       print the NATS password of NAME: a tenant, or SYSTEM
#   prepare.sh rotate NAME     make a new NATS password for NAME; with POSTGRES, the one of Oncepay's role. docs/DEPLOY.md says what follows
#
# A secret is a file in a volume that only its readers mount, so that it stands in no image, no environment and no list of processes.
set -eu
umask 022

conf=${NATS_CONF:-/etc/nats}             # the configuration, whose includes name the passwords
passwords=${NATS_PASSWORDS:-/secrets/nats}
postgres=${POSTGRES_SECRETS:-/secrets/postgres}
oncepay=${ONCEPAY_SECRETS:-/secrets/oncepay}
nats_uid=${NATS_UID:-1000}
nodes='nats-1 nats-2 nats-3'

fail() { printf 'prepare: %s\n' "$*" >&2; exit 1; }

# 192 random bits in hex: nothing in it needs quoting in a URL, SQL or the NATS configuration.
random() {
  secret=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
  [ ${#secret} -eq 48 ] || fail 'no random bytes could be read'
}

# put FILE writes standard input; whoever reads FILE sees all of it or none. What an interrupted run left is read-only, and not even root may
# write to it here.
put() {
  rm -f "$1.new"
  cat >"$1.new"
  chmod 0444 "$1.new"
  mv -f "$1.new" "$1"
}

# names lists the passwords that the configuration includes. What is commented out includes nothing.
names() {
  sed -n 's|^ *include "passwords/\([A-Za-z0-9_-]*\)\.conf".*|\1|p' "$conf"/*.conf | sort -u
}

nats_password() { sed -n 's/^password: "\(.*\)"$/\1/p' "$passwords/$1.conf"; }

# A password is a line that the user's block includes. The nodes' own stands in their routes, too: a route without it is refused.
new_nats_password() {
  random
  if [ "$1" = ROUTE ]; then
    printf 'authorization { user: ROUTE, password: "%s", timeout: 3 }\nroutes: [\n' "$secret"
    for node in $nodes; do printf '  "nats-route://ROUTE:%s@%s:6222"\n' "$secret" "$node"; done
    echo ']'
  else
    printf 'password: "%s"\n' "$secret"
  fi | put "$passwords/$1.conf"
}

# known NAME: is it a user of the configuration? It also keeps anything but a name out of a path.
known() {
  names | grep -qxF -- "$1" || fail "no user $1 includes passwords/$1.conf in the NATS configuration"
}

# The URLs are made anew each time, from passwords that are not.
write_urls() {
  printf 'postgres://oncepay:%s@postgres:5432/oncepay?sslmode=disable\n' "$(cat "$postgres/oncepay")" | put "$oncepay/database_url"
  p=$(nats_password ONCEPAY)
  [ -n "$p" ] || fail "the user ONCEPAY has no password in $passwords"
  urls=
  for node in $nodes; do urls="$urls${urls:+,}nats://ONCEPAY:$p@$node:4222"; done
  printf '%s\n' "$urls" | put "$oncepay/nats_url"
}

new_postgres_password() {
  random
  printf '%s\n' "$secret" | put "$postgres/$1"
}

prepare() {
  for name in superuser oncepay; do
    [ -s "$postgres/$name" ] && continue
    new_postgres_password "$name"
    echo "prepare: made the password of PostgreSQL's $name"
  done
  all=$(names)
  [ -n "$all" ] || fail "no password is included by $conf/*.conf"
  for name in $all; do
    [ -s "$passwords/$name.conf" ] && continue
    new_nats_password "$name"
    echo "prepare: made the NATS password of $name"
  done
  write_urls
  for dir in "$@"; do
    [ "$(stat -c %u "$dir")" = "$nats_uid" ] || chown "$nats_uid:$nats_uid" "$dir"
  done
}

case ${1:-} in
'') shift $#; prepare ${NATS_DATA:-} ;;
show)
  [ $# -eq 2 ] || fail 'show needs one name'
  known "$2"
  [ "$2" != ROUTE ] || fail 'nobody but the servers uses the password of ROUTE'
  nats_password "$2" ;;
rotate)
  [ $# -eq 2 ] || fail 'rotate needs one name'
  if [ "$2" = POSTGRES ]; then
    new_postgres_password oncepay
    write_urls
    echo "prepare: Oncepay's role has a new password, which counts once PostgreSQL is told"
    exit
  fi
  known "$2"
  new_nats_password "$2"
  write_urls
  echo "prepare: $2 has a new NATS password, which counts once the servers have loaded it" ;;
*) fail "unknown command $1; it is show NAME, rotate NAME, or nothing" ;;
esac
