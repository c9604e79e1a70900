// Command web takes signups over HTTP. The row of a signup and the message that starts its saga commit in one
// transaction, so either both exist or neither does, whatever breaks between the request and the answer.
//
//	DATABASE_URL=postgres://… go run ./examples/programs/web
//	curl -d '{"Email":"snorri@example.org"}' localhost:8080/signups
//	curl localhost:8080/signups/snorri@example.org
package main
