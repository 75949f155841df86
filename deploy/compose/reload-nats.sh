#!/bin/sh
# Makes every NATS node load its configuration again, after a tenant was added or a password was changed. Run it where docker-compose.yml is.
#
# Twice, since nats-server 2.15 makes a new account by the first and the subscriptions of its imports only by the second. By a signal from
# inside, since Docker takes one that it sends itself (docker compose kill -s HUP) for the end of the container, and does not restart it after
# a crash any more.
set -eu
compose=${COMPOSE:-docker compose}
for round in 1 2; do
  for node in nats-1 nats-2 nats-3; do
    $compose exec -T "$node" kill -HUP 1
  done
  sleep 1
done
echo 'the three nodes were told to load their configuration; docker compose logs nats-1 shows what they say'
