// Command shop is the program that a reader of the tutorial, docs/tutorial, has at its end: a shop with roles, probes,
// metrics and pages behind a login. TestReaderHasTheShop compares it with the pages.
//
//	roles         # as an administrator of the server, once
//	shop setup    # as the owner of the schema, at each deploy
//	shop          # as the role of the runtime, in as many processes as you like
package main
