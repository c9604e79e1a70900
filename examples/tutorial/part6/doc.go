// Command part6 is the last part of the tutorial, docs/tutorial/6-production.md: the shop with roles, probes,
// metrics and pages behind a login.
//
//	roles         # as an administrator of the server, once
//	shop setup    # as the owner of the schema, at each deploy
//	shop          # as the role of the runtime, in as many processes as you like
package main
