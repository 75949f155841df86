// Package mark notices that the database was exchanged for an older one.
//
// How far the database has come is counted in it, once a second while payments are worked on, and then copied into a key-value bucket of JetStream.
// Every new connection to PostgreSQL is compared with the copy before anybody uses it. A database that is behind, or another one, has forgotten
// payments that may have been charged: the Gate closes, and the worker pulls, takes and sends nothing until the database was rewound or somebody
// has said that it is right.
package mark
