// Command journey handles one message in a warm process and writes which lines ran meanwhile. The test of the house
// builds it with coverage and counts the packages, files and functions.
//
//	journey saga DIR     a command to a saga, which sends a message
//	journey leased DIR   a command to a handler outside of transactions
//	journey run DIR      a run of a manifest, whose message starts a saga
//
// DATABASE_URL names the database, in which it makes a schema of the name of its first argument. DIR gets a folder for
// each of several messages. Background work runs beside some of them; the way of the message is in all.
package main
