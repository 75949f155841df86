// Package nats holds the configuration of the NATS cluster: conf/server.conf for every node, conf/accounts.conf for who may do what, and
// conf/tenants.conf with a block for each tenant. Its tests start a cluster of three from these very files and hold them to what the
// workers need and what a tenant must not reach.
package nats
